"""Two make-believe agents that work on the tasks of the quickstart corpus, with the mistakes that real ones make.

A run follows a sound procedure for its kind of task, except for at most one planned slip (below) and for small
stumbles on the way. What a slip leads to is not written down anywhere: the shop's final state, and what the customer
was told, decide the reward.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

import corpus_words as words
from corpus_shop import PARAMETERS, TODAY, Json, Shop
from corpus_tasks import Task


@dataclass(frozen=True)
class Profile:
    """One model: rates of its habits, each between 0 and 1."""

    name: str
    slip: float  # a run has a planned slip, times the task's difficulty
    stumble: float  # a change is first called with broken arguments, then corrected
    detour: float  # a lookup with a tool that cannot help
    quits: float  # gives up, or claims success, after a timeout instead of retrying
    confirms: float  # asks before it changes something
    thinks: float  # a run carries reasoning text
    pairs: float  # opens two orders in one turn


PROFILES = (
    Profile("careful-1", slip=0.17, stumble=0.08, detour=0.03, quits=0.05, confirms=0.8, thinks=0.45, pairs=0.55),
    Profile("hasty-1", slip=0.62, stumble=0.16, detour=0.12, quits=0.4, confirms=0.3, thinks=0.12, pairs=0.3),
)
TIMEOUT_RATE = 0.05  # of all calls to known tools; the call has no effect and may be sent again
TIMEOUTS = ("Error: timeout after 10 s, try again", "Error: timeout while waiting for the order service")

# Planned slips by kind of task. `wrong_order` acts on the first order of the list unchecked, which may be right.
_CHANGE = ("wrong_order", "claim_done", "stop_early", "ghost_tool", "invented_id", "blind_repeat")
SLIPS: dict[str, tuple[str, ...]] = {
    "cancel": (*_CHANGE, "wrong_tool"),
    "refund_item": (*_CHANGE, "whole_order", "wrong_tool"),
    "address": (*_CHANGE, "misread"),
    "track": ("wrong_order", "guess", "stop_early", "ghost_tool", "invented_id"),
    "late_refund": ("policy", "policy", "policy", "stop_early", "wrong_order"),
    "shipped_cancel": ("policy", "policy", "stop_early", "ghost_tool"),
    "exchange": (*_CHANGE, "wrong_variant"),
    "product": ("first_hit", "first_hit", "stop_early", "ghost_tool"),
    "two_things": ("half", "half", "claim_done", "stop_early", "ghost_tool"),
    "lost_parcel": ("half", "guess", "claim_done", "stop_early", "ghost_tool"),
}
GHOSTS = {  # tools that do not exist, by kind of task; `modify_order` for the others
    "refund_item": "issue_store_credit",
    "lost_parcel": "open_claim",
    "address": "update_delivery",
    "track": "get_delivery_date",
    "product": "recommend_product",
    "exchange": "create_return",
}
WRONG_TOOLS = {"cancel": "refund_order", "refund_item": "cancel_order"}
CANDIDATES = {  # which orders a sensible agent opens first
    "processing": ("cancel", "address", "two_things"),
    "shipped": ("track", "shipped_cancel", "lost_parcel"),
    "delivered": ("refund_item", "late_refund", "exchange"),
}


class Closed(Exception):
    """The conversation is over."""


class Episode:
    """One conversation: it collects the messages, and lets calls act on the run's own copy of the shop."""

    def __init__(self, task: Task, profile: Profile, rng: random.Random, slip: str | None) -> None:
        self.task, self.profile, self.rng, self.slip = task, profile, rng, slip
        self.shop: Shop = task.shop.copy()
        self.messages: list[Json] = [{"role": "system", "content": words.SYSTEM}]
        self.thinks = self.chance(profile.thinks)
        self.facts: Json = dict(task.told)
        self.n_calls = 0

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, texts: tuple[str | None, ...], usual: bool = False) -> str | None:
        """One of several wordings; `usual` leaves the choice to the task, so that its runs begin alike."""
        rng = random.Random(self.task.task_id) if usual else self.rng
        text = rng.choice(texts)
        return text.format(**self.facts) if text else None

    def hear(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def _assistant(self, text: str | None, calls: list[Json] | None, thought: str | None) -> None:
        message: Json = {"role": "assistant", "content": text}
        if thought and self.thinks:
            message["reasoning_content"] = self.pick(words.THOUGHTS[thought])
        if calls:
            message["tool_calls"] = calls
        self.messages.append(message)

    def say(self, texts: tuple[str, ...], thought: str | None = None, usual: bool = False) -> None:
        self._assistant(self.pick(texts, usual), None, thought)

    def close(self, texts: tuple[str, ...], thought: str | None = None) -> NoReturn:
        self.say(texts, thought)
        if self.chance(0.12):
            self.hear(self.rng.choice(words.THANKS))
            self.say(words.GOODBYE)
        raise Closed

    def _exchange(self, calls: list[tuple[str, Json]], text: str | None, thought: str | None) -> list[str]:
        """One assistant turn with its calls, and their results."""
        sent, results = [], []
        for name, arguments in calls:
            raw = json.dumps(arguments, ensure_ascii=False)
            # Ids are digests, so runs of a task that begin alike are equal byte for byte up to their first difference.
            digest = hashlib.sha256(f"{self.task.task_id}|{self.n_calls}|{name}|{raw}".encode()).hexdigest()
            function = {"name": name, "arguments": raw}
            sent.append({"id": f"call_{digest[:12]}", "type": "function", "function": function})
            self.n_calls += 1
        self._assistant(text, sent, thought)
        for (name, arguments), call in zip(calls, sent, strict=True):
            lost = name in PARAMETERS and self.chance(TIMEOUT_RATE)
            result = self.rng.choice(TIMEOUTS) if lost else self.shop.execute(name, arguments)
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "name": name, "content": result})
            results.append(result)
        return results

    def call(self, name: str, arguments: Json, text: str | None = None, thought: str | None = None) -> Any:
        """A call, sent again while it times out. The parsed result, or None where the tool refused."""
        for _ in range(3):
            [result] = self._exchange([(name, arguments)], text, thought)
            if not result.startswith("Error: timeout"):
                return None if result.startswith("Error") else json.loads(result)
            if self.chance(self.profile.quits):
                # A change that timed out is sometimes reported as made.
                self.close(words.DONE[name] if name in words.DONE and self.chance(0.5) else words.GAVE_UP)
            text, thought = self.pick(words.RETRYING), "retry"
        self.close(words.GAVE_UP)

    def open_both(self, order_ids: list[str]) -> list[Any]:
        """Two orders in one turn; what timed out is asked for again on its own."""
        results = self._exchange([("get_order", {"order_id": i}) for i in order_ids], None, None)
        return [
            self.call("get_order", {"order_id": i}, thought="retry") if r.startswith("Error") else json.loads(r)
            for i, r in zip(order_ids, results, strict=True)
        ]

    # ---- steps ----
    def identify(self) -> str:
        told = self.task.told
        if not told["contact_given"]:
            self.say(words.ASK_CONTACT, usual=True)
            self.hear(random.Random(self.task.task_id).choice(words.CONTACT_REPLY).format(**told))
        found = self.call("find_customer", {"email": told["email"]}, self.pick(words.LOOK_UP, usual=True))
        if found is None:
            self.say(words.ASK_PHONE)
            self.hear(self.rng.choice(words.PHONE_REPLY).format(**told))
            found = self.call("find_customer", {"phone": told["phone"]})
        self.facts["first"] = found["name"].split()[0]
        return str(found["customer_id"])

    def listed(self, customer_id: str) -> list[Json]:
        """The customer's orders, those in a likely state first."""
        orders = self.call("list_orders", {"customer_id": customer_id}, self.pick(words.LISTING))
        likely = next(status for status, kinds in CANDIDATES.items() if self.task.kind in kinds)
        return sorted(orders, key=lambda order: order["status"] != likely)

    def open(self, order_id: str, thought: str | None = None) -> Json:
        self.facts["order_id"] = order_id
        order = self.call("get_order", {"order_id": order_id}, self.pick(words.OPENING_ORDER), thought)
        if order is None:
            self.close(words.GAVE_UP)
        return dict(order)

    def find_order(self, customer_id: str, products: list[str]) -> list[Json]:
        """The orders that hold each product, found by opening them, likely ones first."""
        ranked = self.listed(customer_id)
        if self.slip == "stop_early":
            self.close(words.HAND_OFF)
        if self.slip == "wrong_order":
            return [self.open(ranked[0]["order_id"], "rush")]
        if self.chance(self.profile.detour):
            detours = (
                ("search_products", {"query": products[0]}),
                ("track_shipment", {"order_id": ranked[-1]["order_id"]}),
            )
            self.call(*self.rng.choice(detours))
        found: dict[str, Json] = {}
        queue = [order["order_id"] for order in ranked]
        while queue and len(found) < len(products):
            if len(queue) > 1 and self.chance(self.profile.pairs):
                opened = self.open_both([queue.pop(0), queue.pop(0)])
            else:
                opened = [self.open(queue.pop(0))]
            for order in opened:
                found.update({p: order for p in products if any(item["name"] == p for item in order["items"])})
        if len(found) < len(products):
            self.close(words.GAVE_UP)
        return [found[p] for p in products]

    def confirm(self, which: str) -> None:
        if self.chance(self.profile.confirms):
            self.say(words.CONFIRM[which], "pick")
            self.hear(self.rng.choice(words.YES))

    def act(self, name: str, arguments: Json) -> Any:
        """A change of the shop, or one of the ways to get it wrong. Returns only when the change was made."""
        kind = self.task.kind
        if self.slip == "claim_done":
            self.close(words.DONE[name], "rush")
        if self.slip == "ghost_tool":
            self.call(GHOSTS.get(kind, "modify_order"), arguments)
            self.close(words.DONE[name] if self.chance(0.4) else words.GAVE_UP)
        if self.slip == "wrong_tool":
            self.call(
                WRONG_TOOLS[kind], {"order_id": arguments["order_id"], "skus": ["all"], "reason": "customer request"}
            )
            self.close(words.GAVE_UP)
        if self.slip == "blind_repeat":
            self.repeat(name, self.broken(arguments), words.GAVE_UP)
        thought = None
        if self.chance(self.profile.stumble):
            self.call(name, self.broken(arguments))
            thought = "fix"
        done = self.call(name, arguments, thought=thought)
        if done is None:
            self.close(words.GAVE_UP if self.chance(0.7) else words.DONE[name])
        return done

    def repeat(self, name: str, arguments: Json, last: tuple[str, ...]) -> NoReturn:
        """A call that is refused, sent unchanged until patience ends."""
        for _ in range(self.rng.choice((2, 3, 3))):
            self.call(name, arguments)
        self.close(last)

    def broken(self, arguments: Json) -> Json:
        """Arguments the tool refuses by their form: an id in the wrong shape, or a required one left out."""
        if self.chance(0.5):
            return {**arguments, "order_id": self.rng.choice(("#{}", "{}-1", "order {}")).format(arguments["order_id"])}
        return {key: value for key, value in arguments.items() if key != list(arguments)[-1]}


def wrong_id(ep: Episode) -> str:
    """An order id with two digits swapped, or, where the customer gave none, one out of thin air."""
    known = str(ep.task.told.get("order_id") or f"Q{ep.rng.randrange(10_000, 20_000)}")
    swapped = known[:2] + known[3] + known[2] + known[4:]
    return swapped if swapped not in ep.shop.orders else f"Q{ep.rng.randrange(10_000, 20_000)}"


def days_since(delivered: str) -> int:
    return (TODAY - date.fromisoformat(delivered)).days
