"""How an agent of the quickstart corpus works through each kind of task, in the steps of `corpus_agent`."""

from __future__ import annotations

import random
from dataclasses import dataclass

import corpus_words as words
from corpus_agent import GHOSTS, SLIPS, Closed, Episode, Profile, days_since, wrong_id
from corpus_shop import Json
from corpus_tasks import Task


@dataclass(frozen=True)
class Run:
    messages: list[Json]
    reward: float


def play(task: Task, profile: Profile, rng: random.Random) -> Run:
    slips = rng.random() < profile.slip * task.difficulty
    slip = rng.choice(SLIPS[task.kind]) if slips else None
    ep = Episode(task, profile, rng, slip)
    try:
        ep.hear(task.opening)
        _POLICIES[task.kind](ep)
        raise AssertionError(f"{task.kind}: a policy must close the conversation")
    except Closed:
        pass
    said = "\n".join(m["content"] or "" for m in ep.messages if m["role"] == "assistant")
    return Run(ep.messages, task.reward(ep.shop.orders, said))


def _the_order(ep: Episode) -> Json:
    """Identify the customer and find the one order that the request is about."""
    if ep.slip == "invented_id":
        name = "track_shipment" if ep.task.kind == "track" else "get_order"
        ep.repeat(name, {"order_id": wrong_id(ep)}, words.GAVE_UP)
    known = ep.task.told.get("order_id")
    customer_id = ep.identify()
    if known and ep.slip == "stop_early":
        ep.close(words.HAND_OFF)
    if known and ep.slip != "wrong_order":
        order = ep.open(known)
    else:
        [order] = ep.find_order(customer_id, [ep.task.told["product"]])
    _learn(ep, order)
    return order


def _learn(ep: Episode, order: Json) -> None:
    """Facts for the agent's next sentences, from what the tool showed."""
    ep.facts.update({key: order.get(key) for key in ("order_id", "status", "delivered", "tracking")})
    ep.facts["total"] = ep.facts["amount"] = f"{order['total']:.2f}"


def _item(ep: Episode, order: Json) -> Json:
    """The item asked for; an agent in the wrong order takes the first one it sees."""
    named = [item for item in order["items"] if item["name"] == ep.task.told["product"]]
    return dict((named or order["items"])[0])


def _refund(ep: Episode, order: Json, items: list[Json], reason: str) -> None:
    ep.facts["amount"] = f"{sum(item['price'] for item in items):.2f}"
    ep.confirm("refund_order")
    skus = [item["sku"] for item in items]
    ep.act("refund_order", {"order_id": order["order_id"], "skus": skus, "reason": reason})
    ep.close(words.DONE["refund_order"])


def _cancel(ep: Episode) -> None:
    order = _the_order(ep)
    ep.confirm("cancel_order")
    ep.act(
        "cancel_order", {"order_id": order["order_id"], "reason": ep.rng.choice(("customer request", "changed mind"))}
    )
    ep.close(words.DONE["cancel_order"])


def _refund_item(ep: Episode) -> None:
    order = _the_order(ep)
    _refund(ep, order, order["items"] if ep.slip == "whole_order" else [_item(ep, order)], "faulty item")


def _address(ep: Episode) -> None:
    order = _the_order(ep)
    ep.confirm("change_address")
    where = {key: ep.task.told[key] for key in ("street", "city", "postcode")}
    if ep.slip == "misread":
        code = where["postcode"]
        where["postcode"] = code[:-2] + str((int(code[-2]) + 1) % 10) + code[-1]
    ep.act("change_address", {"order_id": order["order_id"], **where})
    ep.close(words.DONE["change_address"])


def _track(ep: Episode) -> None:
    order = _the_order(ep)
    if ep.slip == "guess":
        ep.close(words.GUESSED, "rush")
    if ep.slip == "ghost_tool":
        ep.call(GHOSTS["track"], {"order_id": order["order_id"]})
        ep.close(words.GUESSED)
    parcel = ep.call("track_shipment", {"order_id": order["order_id"]}, thought="pick")
    if parcel is None:
        ep.close(words.GAVE_UP)
    ep.facts.update(carrier=parcel["carrier"], eta=parcel["eta"], place=parcel["last_scan"]["place"])
    ep.close(words.TRACKED)


def _late_refund(ep: Episode) -> None:
    order = _the_order(ep)
    if ep.slip == "policy" or days_since(order["delivered"]) <= 30:
        _refund(ep, order, [_item(ep, order)], "customer request")
    ep.close(words.TOO_LATE, "late")


def _shipped_cancel(ep: Episode) -> None:
    order = _the_order(ep)
    arguments = {"order_id": order["order_id"], "reason": "customer request"}
    if ep.slip == "policy":
        ep.repeat("cancel_order", arguments, words.GAVE_UP if ep.chance(0.5) else words.DONE["cancel_order"])
    if ep.slip == "ghost_tool":
        ep.call("intercept_parcel", {"order_id": order["order_id"]})
        ep.close(words.GAVE_UP)
    if ep.chance(ep.profile.detour * 2):  # tries, is refused, and then explains
        ep.call("cancel_order", arguments)
    ep.close(words.SHIPPED, "shipped")


def _exchange(ep: Episode) -> None:
    order = _the_order(ep)
    item = _item(ep, order)
    offered = ep.call("search_products", {"query": item["name"]}, thought="pick")
    fitting = [p for p in offered or [] if p["variant"] == ep.task.told["new_variant"]]
    if ep.slip == "wrong_variant":  # the first other one of the list, sometimes the right one
        fitting = [p for p in offered or [] if p["sku"] != item["sku"]]
    if not fitting:
        ep.close(words.GAVE_UP)
    ep.confirm("exchange_item")
    ep.act("exchange_item", {"order_id": order["order_id"], "sku": item["sku"], "new_sku": fitting[0]["sku"]})
    ep.close(words.DONE["exchange_item"])


def _product(ep: Episode) -> None:
    told = ep.task.told
    if ep.slip == "stop_early":
        ep.close(words.HAND_OFF)
    if ep.slip == "ghost_tool":
        ep.call(GHOSTS["product"], {"family": told["family"], "limit": told["budget"]})
        ep.close(words.GAVE_UP)
    # The first search is worded and limited as usual for the task, so runs part only after its result.
    offered = ep.call("search_products", {"query": told["family"], "max_price": told["budget"]})
    in_stock = [p for p in offered or [] if p["stock"]]
    if ep.slip != "first_hit":
        in_stock.sort(key=lambda p: p["price"])
    best = in_stock[0]
    ep.facts.update(product=best["name"], price=f"{best['price']:.2f}", variant=best["variant"])
    ep.close(words.OFFER, "rush" if ep.slip else "cheapest")


def _two_things(ep: Episode) -> None:
    told = ep.task.told
    first, second = ep.find_order(ep.identify(), [told["product"], told["other"]])
    _learn(ep, first)
    ep.facts["other_id"] = second["order_id"]
    ep.confirm("both")
    ep.act("cancel_order", {"order_id": first["order_id"], "reason": "customer request"})
    if ep.slip == "half":
        ep.close(words.DONE["cancel_order"])
    where = {key: told[key] for key in ("street", "city", "postcode")}
    ep.act("change_address", {"order_id": second["order_id"], **where})
    ep.close(words.DONE["both"])


def _lost_parcel(ep: Episode) -> None:
    order = _the_order(ep)
    if ep.slip == "guess":
        ep.close(words.GUESSED, "rush")
    parcel = ep.call("track_shipment", {"order_id": order["order_id"]}, thought="pick")
    if parcel is None or parcel["status"] != "lost":
        ep.close(words.GAVE_UP)
    _refund(ep, order, [_item(ep, order)] if ep.slip == "half" else order["items"], "lost by carrier")


_POLICIES = {
    "cancel": _cancel,
    "refund_item": _refund_item,
    "address": _address,
    "track": _track,
    "late_refund": _late_refund,
    "shipped_cancel": _shipped_cancel,
    "exchange": _exchange,
    "product": _product,
    "two_things": _two_things,
    "lost_parcel": _lost_parcel,
}
