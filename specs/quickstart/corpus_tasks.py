"""The tasks of the quickstart corpus: for each a small shop, what the customer knows and wants, and what is right.

A task is judged by state: the gold calls are replayed on a copy of the shop, and a run is right when the orders it
leaves behind are those. Questions change nothing, so they name what the customer must have been told instead.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta

from corpus_shop import CATALOGUE, TODAY, Json, Product, Shop
from corpus_words import CONTACT_UPFRONT, OPENINGS, ORDER_UPFRONT

KINDS = (
    "cancel",
    "refund_item",
    "address",
    "track",
    "late_refund",
    "shipped_cancel",
    "exchange",
    "product",
    "two_things",
    "lost_parcel",
)
# fmt: off
FIRST = (
    "Zoë", "Bram", "Ines", "Tomas", "Priya", "Ade", "Yuki", "Marta", "Otis", "Leila", "Søren", "Wanda", "Kofi",
    "Elin", "Ravi", "Noor", "Petra", "Caleb", "Anouk", "Iván",
)
LAST = (
    "Quillfeather", "Thistlewood", "Marrowby", "Candlish", "Netherby", "Larkspur", "Hollowell", "Fennimore",
    "Wrenfield", "Saltmarsh", "Brackwater", "Tansley", "Oakhampton", "Merrivale", "Pennywhistle", "Dunmarrow",
)
# fmt: on
STREETS = ("Gorse Lane", "Ropewalk", "Tannery Street", "Heron Quay", "Old Mill Road", "Lantern Row", "Chandler's Yard")
CITIES = (
    ("Port Ellery", "PE"),
    ("Hazelmere", "HZ"),
    ("Brackwater", "BW"),
    ("Nether Sallow", "NS"),
    ("Coldharbour", "CH"),
)
ASCII = str.maketrans("ëøá", "eoa")


@dataclass(frozen=True)
class Task:
    task_id: str
    kind: str
    shop: Shop  # as every run finds it; runs work on copies
    opening: str
    told: Json  # what the customer can say: email, phone, product, new address, order_id where it was given …
    gold: tuple[tuple[str, Json], ...]
    must_say: tuple[str, ...]
    customer_id: str
    order_ids: tuple[str, ...]
    difficulty: float  # scales how often agents slip; some tasks are easy for everybody
    goal: dict[str, Json] = field(repr=False, default_factory=dict)  # the orders after the gold calls

    def reward(self, orders: dict[str, Json], said: str) -> float:
        """Share of the orders to change that came out right; 0 for any other change, or for a fact left unsaid."""
        start = self.shop.orders
        wanted = {i for i in start if self.goal[i] != start[i]}
        spoilt = any(orders[i] != start[i] for i in start if i not in wanted)
        if spoilt or not all(fact in said for fact in self.must_say):
            return 0.0
        return round(sum(orders[i] == self.goal[i] for i in wanted) / len(wanted), 2) if wanted else 1.0


class _Builder:
    """Fills one shop: the customer of the task, two strangers, and orders."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shop = Shop()
        names = [f"{a} {b}" for a, b in zip(rng.sample(FIRST, 3), rng.sample(LAST, 3), strict=True)]
        phones = rng.sample(range(100, 200), 3)
        self.customers = [self._customer(name, phone) for name, phone in zip(names, phones, strict=True)]
        self.shop.customers = {c["customer_id"]: c for c in self.customers}
        self.order_ids = iter(rng.sample(range(20_000, 90_000), 12))

    def _customer(self, name: str, phone: int) -> Json:
        local = name.lower().translate(ASCII).replace(" ", ".")
        host = self.rng.choice(("example.com", "example.org", "example.net"))
        code = f"C{phone}{self.rng.randrange(10, 100)}"
        return {"customer_id": code, "name": name, "email": f"{local}@{host}", "phone": f"555-0{phone}"}

    def address(self) -> Json:
        city, code = self.rng.choice(CITIES)
        street = f"{self.rng.randrange(1, 98)} {self.rng.choice(STREETS)}"
        return {"street": street, "city": city, "postcode": f"{code}-{self.rng.randrange(1000, 9999)}"}

    def order(self, status: str, goods: list[Product], age: int, who: int = 0, lost: bool = False) -> Json:
        """`age`: days since the order was placed. What is delivered came four days after that."""
        placed = TODAY - timedelta(days=age)
        order_id = f"Q{next(self.order_ids)}"
        order: Json = {
            "order_id": order_id,
            "customer_id": self.customers[who]["customer_id"],
            "status": status,
            "placed": placed.isoformat(),
            "items": [
                {"sku": p.sku, "name": p.name, "variant": p.variant, "price": p.price, "state": "ok"} for p in goods
            ],
            "ship_to": self.address(),
            "total": round(sum(p.price for p in goods), 2),
        }
        if status == "delivered":
            order["delivered"] = (placed + timedelta(days=4)).isoformat()
        if status == "shipped":
            order["tracking"] = f"FX{self.rng.randrange(10**8, 10**9)}"
            scanned, eta = TODAY - timedelta(days=19 if lost else 1), TODAY + timedelta(days=self.rng.randrange(1, 6))
            self.shop.parcels[order_id] = {
                "tracking": order["tracking"],
                "carrier": self.rng.choice(("Swift Otter Post", "Grey Mule Freight")),
                "status": "lost" if lost else "in transit",
                "last_scan": {"place": self.rng.choice(CITIES)[0], "on": scanned.isoformat()},
                "eta": None if lost else eta.isoformat(),
            }
        self.shop.orders[order_id] = order
        return order


def _goods(
    rng: random.Random, count: int, product: Product | None = None, avoid: tuple[str, ...] = ()
) -> list[Product]:
    """`count` items of different products, `product` among them when given."""
    taken = {*avoid, *([product.name] if product else [])}
    goods = [product] if product else []
    while len(goods) < count:
        one = rng.choice(CATALOGUE)
        if one.name not in taken:
            taken.add(one.name)
            goods.append(one)
    rng.shuffle(goods)
    return goods


def _swap(rng: random.Random) -> tuple[Product, Product]:
    """A product in two variants, the second one in stock."""
    new = rng.choice([p for p in CATALOGUE if p.stock > 1])
    return rng.choice([p for p in CATALOGUE if p.name == new.name and p.sku != new.sku]), new


def _place(build: _Builder, kind: str, product: Product, other: Product | None) -> list[Json]:
    """The orders the request is about, and decoys in the same state, some of them newer."""
    rng, status = build.rng, {"cancel": "processing", "address": "processing", "two_things": "processing"}.get(kind)
    avoid = (product.name, other.name if other else "")
    if status is None:
        status = "shipped" if kind in {"track", "shipped_cancel", "lost_parcel"} else "delivered"
    age = {"processing": 2, "shipped": 25 if kind == "lost_parcel" else 6, "delivered": 16}[status]
    if kind == "late_refund":
        age = rng.randrange(48, 110)
    size = 1 if kind in {"cancel", "address", "two_things", "track"} else rng.randrange(2, 4)
    placed = [build.order(status, _goods(rng, size, product, avoid), age, lost=kind == "lost_parcel")]
    if other:
        placed.append(build.order(status, _goods(rng, 1, other, avoid), age - 1))
    for _ in range(rng.choice((1, 1, 1, 2))):
        recent = {"late_refund": rng.randrange(8, 24), "lost_parcel": rng.randrange(3, 9)}
        decoy_age = recent.get(kind, max(1, age + rng.choice((-1, -1, 1, 2))))
        build.order(status, _goods(rng, rng.randrange(1, 3), None, avoid), decoy_age)
    build.order("delivered", _goods(rng, 1, None, avoid), rng.randrange(120, 300))
    build.order(rng.choice(("processing", "delivered")), _goods(rng, 2), rng.randrange(5, 20), who=1)
    return placed


def _gold(kind: str, placed: list[Json], told: Json, item: Json | None, new: Product | None) -> list[tuple[str, Json]]:
    order_id = placed[0]["order_id"] if placed else ""
    where = {key: told[key] for key in ("street", "city", "postcode")}
    if kind == "cancel":
        return [("cancel_order", {"order_id": order_id, "reason": "customer request"})]
    if kind == "address":
        return [("change_address", {"order_id": order_id, **where})]
    if kind == "refund_item" and item:
        return [("refund_order", {"order_id": order_id, "skus": [item["sku"]], "reason": "faulty"})]
    if kind == "lost_parcel":
        return [
            ("refund_order", {"order_id": order_id, "skus": [i["sku"] for i in placed[0]["items"]], "reason": "lost"})
        ]
    if kind == "exchange" and item and new:
        return [("exchange_item", {"order_id": order_id, "sku": item["sku"], "new_sku": new.sku})]
    if kind == "two_things":
        first = ("cancel_order", {"order_id": order_id, "reason": "customer request"})
        return [first, ("change_address", {"order_id": placed[1]["order_id"], **where})]
    return []


def cheapest(family: str, budget: float) -> Product:
    return min((p for p in CATALOGUE if p.family == family and p.price <= budget and p.stock), key=lambda p: p.price)


def make_task(index: int, seed: int) -> Task:
    """Task number `index`; depends on nothing but its number and the seed."""
    rng = random.Random(f"{seed}:task:{index}")
    kind = KINDS[index % len(KINDS)]
    build = _Builder(rng)
    product, new = _swap(rng)
    other = rng.choice([p for p in CATALOGUE if p.name != product.name]) if kind == "two_things" else None
    placed = [] if kind == "product" else _place(build, kind, product, other)
    customer = build.customers[0]
    dearest = max(p.price for p in CATALOGUE if p.family == product.family)
    told: Json = {
        "email": customer["email"],
        "phone": customer["phone"],
        "product": product.name,
        "family": product.family,
        "variant": product.variant,
        "new_variant": new.variant,
        "budget": int(dearest) - 1,
        "other": other.name if other else "",
        **build.address(),
    }
    if rng.random() < 0.12:  # a customer who remembers the wrong mailbox; the phone number still finds the account
        told["email"] = customer["email"].replace(".", "_", 1)
    must_say: list[str] = []
    if kind == "track":
        must_say = [build.shop.parcels[placed[0]["order_id"]]["eta"]]
    elif kind == "late_refund":
        must_say = ["30 days", placed[0]["delivered"]]
    elif kind == "shipped_cancel":
        must_say = [placed[0]["tracking"]]
    elif kind == "product":
        best = cheapest(product.family, told["budget"])
        must_say = [best.name, f"{best.price:.2f}"]

    opening = OPENINGS[kind][index // len(KINDS) % len(OPENINGS[kind])].format(**told)
    told["contact_given"] = False
    if kind != "product" and rng.random() < 0.65:
        told["contact_given"] = True
        by_order = kind != "two_things" and rng.random() < 0.45
        if by_order:
            told["order_id"] = placed[0]["order_id"]
        line = rng.choice(ORDER_UPFRONT if by_order else CONTACT_UPFRONT).format(**told)
        opening = f"{opening}{'.' if opening[-1].isalnum() else ''} {line}"
    item = next((i for i in placed[0]["items"] if i["name"] == product.name), None) if placed else None
    gold = _gold(kind, placed, told, item, new)
    after = build.shop.copy()
    for name, arguments in gold:
        answer = after.execute(name, arguments)
        if answer.startswith("Error"):
            raise AssertionError(f"task {index}: gold call {name} refused: {answer}")
    return Task(
        task_id=f"desk-{index + 1:03d}",
        kind=kind,
        shop=build.shop,
        opening=opening,
        told=told,
        gold=tuple(gold),
        must_say=tuple(must_say),
        customer_id=customer["customer_id"],
        order_ids=tuple(order["order_id"] for order in placed),
        difficulty=rng.choice((0.35, 1.0, 1.0, 1.4)),
        goal=after.orders,
    )
