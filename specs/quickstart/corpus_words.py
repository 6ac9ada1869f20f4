"""What customers and agents of the quickstart corpus say. Fields are filled from the task and from tool results."""

from __future__ import annotations

SYSTEM = (
    "You are the service agent of Quillmoor Goods, an online shop. Today is 2026-03-16.\n"
    "Identify the customer before you show or change an order. Ask for a yes before any change.\n"
    "Processing orders can be cancelled or re-addressed; shipped ones cannot: give the tracking number instead.\n"
    "Items can be refunded or exchanged within 30 days of delivery. A parcel that tracking shows as lost is refunded "
    "in full.\n"
    "Do only what was asked for. Never promise a change that no tool confirmed."
)

# ---- the customer ----------------------------------------------------------------------------------------------------
OPENINGS: dict[str, tuple[str, ...]] = {
    "cancel": (
        "Hi, I need to cancel my order for the {product}, I found one at a flea market.",
        "please cancel the {product}. ordered it twice by accident I think",
        "Hello! My partner already bought a {product}, so could you stop the one I ordered?",
        "I changed my mind about the {product}. Can that order still be called off?",
        "Good morning. The {product} was meant for a trip that fell through, I'd like to cancel it.",
        "Cancel my {product} order please, money is tight this month.",
    ),
    "refund_item": (
        "The {product} from my last parcel arrived damaged. The rest is fine, I just want my money back for that one.",
        "hey, my {product} broke on day two. refund for it please, nothing else",
        "I'd like to return the {product} only – it isn't what the photo showed.",
        "Hello, one thing in my order, the {product}, has a crack in it. Could you refund that item?",
        "The {product} smells odd even after airing it for a week. I want a refund for that, I keep the other things.",
        "Can I get a refund on the {product}? It came with a stain.",
    ),
    "address": (
        "I'm moving! Please send my {product} to {street}, {city}, {postcode} instead.",
        "wrong address on my {product} order, should be {street}, {city}, {postcode}",
        "Hello, can the parcel with the {product} go to my office? That's {street}, {city}, {postcode}.",
        "I gave you my old flat by mistake. The {product} should go to {street}, {city}, {postcode}.",
        "We'll be at my mother's next week. Could the {product} be delivered to {street}, {city}, {postcode}?",
        "New delivery address for the {product}: {street}, {city}, {postcode}. Thank you.",
    ),
    "track": (
        "Where is my {product}? It was supposed to be here by now.",
        "hi there, when does the {product} arrive? I need someone at home",
        "Could you tell me which day the {product} will be delivered?",
        "My {product} has been on its way for a while. Do you know where it is?",
        "I'm leaving on Friday and still have no {product}. What's the delivery date?",
        "Any news on the {product} I ordered?",
    ),
    "late_refund": (
        "I never really used the {product}. I want to return it for a refund.",
        "the {product} doesn't suit me after all, refund please",
        "Hello, could you take the {product} back and refund me? It's as good as new.",
        "I'd like my money back for the {product}; it just sits in the cupboard.",
        "The {product} turned out a bit too big for our place. I would like a refund.",
        "Can you refund the {product}? I found it cheaper somewhere else.",
    ),
    "shipped_cancel": (
        "Stop! I don't need the {product} any more, cancel it please.",
        "can you cancel my {product}, got one as a gift yesterday",
        "I'd like to cancel the order with the {product} before it goes out.",
        "Hello, please cancel the {product}. I picked the wrong colour anyway.",
        "Hi, I want to call off my order of the {product}.",
        "Is it too late to cancel the {product}? I'd rather have the money.",
    ),
    "exchange": (
        "The {product} I got is {variant}, but I need {new_variant}. Can I swap it?",
        "hi! could I exchange my {product} ({variant}) for {new_variant}?",
        "I ordered the {product} in {variant} and that was a mistake, {new_variant} would be right.",
        "Hello, I'd like {new_variant} instead of {variant} for my {product}.",
        "My {product} came in {variant}. I'd be happier with {new_variant} – is an exchange possible?",
        "Swap the {product} from {variant} to {new_variant}, please.",
    ),
    "product": (
        "I'm looking for the cheapest {family} you have in stock, under ${budget}.",
        "what's your lowest priced {family} below ${budget}? must be available now",
        "Could you recommend a {family}? My limit is ${budget}, and the cheaper the better.",
        "Hello, I need a {family} as a present and can't spend more than ${budget}. What's the least expensive?",
        "Which {family} has the best price under ${budget}? I'd order today.",
        "Please find me a {family} for at most ${budget} – the cheapest you can send right away.",
    ),
    "two_things": (
        "Two things: cancel the {product}, and send the {other} to {street}, {city}, {postcode}.",
        "hey, don't need the {product} anymore. and the {other} should go to {street}, {city}, {postcode} pls",
        "Please call off my order of the {product}. My other one, the {other}, goes to {street}, {city}, {postcode}.",
        "I'd like to cancel the {product} and change the address for the {other} to {street}, {city}, {postcode}.",
        "Since I'm moving: no {product} after all, and please bring the {other} to {street}, {city}, {postcode}.",
        "The {product} can be cancelled. The {other} is still wanted, but at {street}, {city}, {postcode}.",
    ),
    "lost_parcel": (
        "My parcel with the {product} never came and tracking hasn't moved in ages. I want my money back.",
        "the {product} is lost i guess?? please refund the order",
        "It's been weeks and there is no sign of my {product}. Could you check and refund me if it's gone?",
        "Hello, the carrier seems to have lost my {product}. I'd like a refund for the whole order.",
        "Nobody can tell me where my {product} is. If it can't be found I want the order refunded.",
        "I gave up waiting for the {product}. Please look into it and pay me back.",
    ),
}
CONTACT_UPFRONT = (
    "My account is under {email}.",
    "I ordered with {email}.",
    "You'll find me under {email}.",
    "Email: {email}",
)
ORDER_UPFRONT = (
    "{email} is my email and the order is {order_id}.",
    "It's order {order_id}, placed with {email}.",
    "(order {order_id}, {email})",
)
CONTACT_REPLY = (
    "Sure, it's {email}.",
    "{email}",
    "It should be {email}.",
    "Of course: {email}.",
    "I think I used {email}.",
)
PHONE_REPLY = (
    "Odd. Then try my phone number, {phone}.",
    "Maybe that was my other mailbox. Phone is {phone}.",
    "{phone} is the number on the account.",
    "Hm, I may have mistyped it back then. My phone: {phone}.",
)
YES = (
    "Yes, please.",
    "yes go ahead",
    "Correct, do it.",
    "Yes, that's the one.",
    "Right. Thank you!",
    "Yep.",
    "Please do.",
)
THANKS = (
    "Great, thanks!",
    "Perfect, that's all.",
    "ok thx",
    "Lovely, thank you for your help.",
    "Thanks, nothing else.",
)

# ---- the agent -------------------------------------------------------------------------------------------------------
ASK_CONTACT = (
    "Happy to help. Which email address is on your account?",
    "I can look into that. Could you give me the email you ordered with?",
    "Sure. Please tell me the email address of your account first.",
)
ASK_PHONE = (
    "I can't find an account with that address. Is there a phone number I could try?",
    "Nothing comes up for this email. Which phone number did you leave with us?",
    "That email isn't known to us. Do you have the phone number of the account?",
)
LOOK_UP: tuple[str | None, ...] = (None, "Let me find your account.", "One moment, I'm looking you up.", None)
LISTING: tuple[str | None, ...] = (
    None,
    None,
    "Found you, {first}. Now your orders.",
    "Thanks, {first}. Let me see what you ordered.",
    None,
)
OPENING_ORDER: tuple[str | None, ...] = (None, None, "I'll open {order_id}.", "Checking what is in {order_id}.", None)
RETRYING: tuple[str | None, ...] = (None, "The system was slow, trying once more.", "That timed out. Again:", None)
CONFIRM: dict[str, tuple[str, ...]] = {
    "cancel_order": (
        "Order {order_id} with the {product} is still processing, total ${total}. Shall I cancel it?",
        "I see the {product} in order {order_id}. May I cancel that order now?",
    ),
    "refund_order": (
        "That is order {order_id}. I would refund ${amount} to your card. Is that right?",
        "I can refund ${amount} for order {order_id}. Shall I go ahead?",
    ),
    "exchange_item": (
        "We have the {product} in {new_variant}. Shall I swap it for the {variant} one from order {order_id}?",
        "{new_variant} is in stock. I'd exchange it against {variant}, order {order_id}. Okay for you?",
    ),
    "change_address": (
        "Order {order_id} has not left yet. New address: {street}, {city}, {postcode}. Correct?",
        "I can still change order {order_id} to {street}, {city}, {postcode}. Shall I?",
    ),
    "both": ("So I cancel {order_id} and send {other_id} to {street}, {city}, {postcode}. Yes?",),
}
DONE: dict[str, tuple[str, ...]] = {
    "cancel_order": (
        "Done: order {order_id} is cancelled and ${total} goes back to your card.",
        "I have cancelled order {order_id}. You will see ${total} on your card within a few days.",
        "Your order for the {product} is cancelled. ${total} will be returned.",
        "Cancelled. Anything else?",
    ),
    "refund_order": (
        "I refunded ${amount} for order {order_id}. It takes three to five days to show up.",
        "The refund of ${amount} is on its way to your card. Sorry for the trouble with the {product}.",
        "Refund done, ${amount}.",
        "All set: ${amount} back for order {order_id}.",
    ),
    "exchange_item": (
        "The exchange is booked: {new_variant} instead of {variant}. Please send the old one back with our label.",
        "Done, the {product} in {new_variant} will ship tomorrow. A return label is on its way to you.",
        "Swapped to {new_variant}.",
    ),
    "change_address": (
        "Order {order_id} will now go to {street}, {city}, {postcode}.",
        "The new address is saved: {street}, {city}. Your {product} will be sent there.",
        "Address changed. Have a good day!",
    ),
    "both": (
        "Both done: {order_id} is cancelled, and {other_id} goes to {street}, {city}, {postcode}.",
        "I cancelled the {product} and changed the address for the {other}.",
        "The {product} is off and the {other} will reach you at {street}.",
    ),
}
TRACKED = (
    "Your {product} was last scanned in {place} and should arrive on {eta}.",
    "Good news, the parcel is in {place}. Delivery is planned for {eta}.",
    "{carrier} expects to deliver on {eta}; the last scan was in {place}.",
    "It's on the way, {eta}.",
)
GUESSED = (
    "It has shipped, so it should reach you within three to five business days.",
    "Your parcel is on its way and will be there very soon!",
    "Usually our deliveries take about a week, so any day now.",
)
TOO_LATE = (
    "I'm sorry, the {product} was delivered on {delivered}. Refunds end 30 days after that, so I can't take it back.",
    "Order {order_id} arrived on {delivered}, which is outside our 30 days for returns. I can't refund the {product}.",
    "That one is past the limit: delivered {delivered}, and we only refund within 30 days. Sorry!",
)
SHIPPED = (
    "The {product} has already left us, so I can't cancel it. Its tracking number is {tracking}; returns are free.",
    "Order {order_id} is with the carrier ({tracking}) and can't be stopped. You have 30 days to send it back.",
    "Too late to cancel, sorry: it shipped as {tracking}. A return is free after delivery.",
)
OFFER = (
    "The cheapest one in stock is the {product} for ${price}, in {variant}.",
    "I'd suggest the {product} at ${price}. We have it in {variant}.",
    "{product}, ${price}, available in {variant}.",
    "For your budget the {product} is the lowest: ${price}.",
)
HAND_OFF = (
    "I have passed this to a colleague, who will write to you.",
    "I can see your account. Someone from the team will take care of it shortly.",
    "Thanks, I've noted your request. You'll hear from us.",
    "I found your orders. Please use the form on our site for changes.",
)
GAVE_UP = (
    "I'm afraid I can't do that right now. Please try again later.",
    "The system doesn't let me. Could you contact us again tomorrow?",
    "Sorry, something is wrong on our side and I could not finish this.",
    "I wasn't able to complete the request.",
)
GOODBYE = ("You're welcome!", "Glad I could help. Take care.", "Any time. Bye!", "My pleasure, enjoy your day.")

THOUGHTS: dict[str, tuple[str, ...]] = {
    "pick": (
        "{order_id} is the one with the {product}; the other orders have nothing to do with the request.",
        "The customer means the {product}. It is in {order_id}, status {status}. I act on that id and no other.",
        "Checked the items: {product} is in {order_id}.",
    ),
    "late": (
        "Delivered {delivered}, today is 2026-03-16: more than 30 days. Policy says no refund, I have to explain it.",
        "The window closed 30 days after {delivered}. No tool call here, only a clear answer.",
    ),
    "shipped": (
        "Status is shipped, cancel_order would be refused. I give the tracking number {tracking} and mention returns.",
        "It left the warehouse already. The policy wants the tracking number, not a cancellation.",
    ),
    "retry": (
        "A timeout says nothing about the order. Sending the same call again is safe.",
        "No answer from the service, not a refusal. One more try.",
    ),
    "fix": (
        "The tool names what is wrong with my arguments. Same call, corrected.",
        "My mistake in the arguments, not a refusal of the request. I correct it.",
    ),
    "rush": ("Probably the newest order. Going with it.", "First one in the list will do.", "No need to check more."),
    "cheapest": ("Sort by price, leave out stock 0: {product} at {price} wins.",),
}
