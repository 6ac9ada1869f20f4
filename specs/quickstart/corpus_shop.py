"""The imaginary shop of the quickstart corpus: its goods, its state and the tools that act on it.

Every tool result in the corpus comes out of `Shop.execute`, so calls, results and the final state always agree. All
names, streets, numbers and goods are invented; addresses use example.com/.org/.net and phone numbers 555-01xx.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from datetime import date
from typing import Any

TODAY = date(2026, 3, 16)
Json = dict[str, Any]


@dataclass(frozen=True)
class Product:
    sku: str
    name: str
    family: str
    variant: str
    price: float
    stock: int


def _variants(code: str, name: str, family: str, price: float, **stock: int) -> list[Product]:
    """One product in several variants at one price, each with its stock."""
    return [Product(f"{code}-{v[:3].upper()}", name, family, v, price, n) for v, n in stock.items()]


CATALOGUE: tuple[Product, ...] = tuple(
    _variants("BLK", "Bramble wool blanket", "blanket", 64.0, heather=11, oatmeal=4, pine=7)
    + _variants("THR", "Fen cotton throw", "blanket", 38.5, rust=9, slate=0, cream=3)
    + _variants("QLT", "Mossbed quilted blanket", "blanket", 92.0, clay=2, indigo=5)
    + _variants("LMP", "Copperline desk lamp", "lamp", 57.0, black=6, brass=3, white=8)
    + _variants("LAN", "Tallow camping lantern", "lamp", 31.9, red=14, green=2, sand=5)
    + _variants("WRN", "Wren bedside lamp", "lamp", 44.0, oak=0, walnut=6)
    + _variants("KET", "Tern enamel kettle", "kettle", 42.0, blue=10, cream=5, mint=1)
    + _variants("GOO", "Gooseneck pour-over kettle", "kettle", 68.0, steel=4, black=6)
    + _variants("TRV", "Skerry travel kettle", "kettle", 29.5, grey=8, red=0)
    + _variants("JKT", "Saltmarsh rain jacket", "jacket", 118.0, small=5, medium=3, large=6)
    + _variants("FLC", "Kittiwake fleece jacket", "jacket", 74.0, small=4, medium=9, large=2)
    + _variants("VST", "Cairn down vest jacket", "jacket", 99.0, small=0, medium=3, large=7)
    + _variants("PCK", "Heron 40 backpack", "backpack", 129.0, ochre=3, navy=5, moss=2)
    + _variants("DAY", "Plover day backpack", "backpack", 55.0, navy=12, clay=6, grey=1)
    + _variants("ROL", "Otterstone roll-top backpack", "backpack", 83.0, black=4, teal=0)
    + _variants("RUG", "Kestrel hall rug", "rug", 96.0, short=2, long=6, round=4)
    + _variants("JUT", "Larch jute rug", "rug", 39.0, short=5, long=7, round=0)
    + _variants("FLT", "Hearthside felt rug", "rug", 34.5, short=9, long=3, round=6)
    + _variants("PAN", "Oxbow cast-iron pan", "pan", 61.0, small=7, medium=4, large=5)
    + _variants("SKL", "Ember steel skillet pan", "pan", 48.0, small=3, large=8)
    + _variants("MUG", "Pebble stoneware mug set", "mug set", 36.0, dove=15, ink=6, honey=2)
    + _variants("CUP", "Tidepool espresso mug set", "mug set", 27.0, aqua=4, chalk=9)
    + _variants("SWT", "Harbour fisherman sweater", "sweater", 89.0, small=3, medium=8, large=4)
    + _variants("CRD", "Dunlin lambswool sweater", "sweater", 79.5, small=6, medium=2, large=5)
)


def _schema(name: str, description: str, required: str, **properties: Json) -> Json:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


_TEXT: Json = {"type": "string"}
_ORDER: Json = {"type": "string", "pattern": "^Q[0-9]{5}$"}
_SKUS: Json = {"type": "array", "items": {"type": "string"}, "minItems": 1}
TOOLS: list[Json] = [
    _schema("find_customer", "Look up a customer by email or by phone.", "", email=_TEXT, phone=_TEXT),
    _schema("list_orders", "All orders of a customer, newest first.", "customer_id", customer_id=_TEXT),
    _schema("get_order", "One order with its items and address.", "order_id", order_id=_ORDER),
    _schema("track_shipment", "Where a shipped order is now.", "order_id", order_id=_ORDER),
    _schema(
        "search_products",
        "Find goods by words, optionally up to a price.",
        "query",
        query=_TEXT,
        max_price={"type": "number"},
    ),
    _schema(
        "cancel_order", "Cancel an order that is still processing.", "order_id reason", order_id=_ORDER, reason=_TEXT
    ),
    _schema(
        "refund_order",
        "Refund items of a delivered order, or of one that the carrier lost.",
        "order_id skus reason",
        order_id=_ORDER,
        skus=_SKUS,
        reason=_TEXT,
    ),
    _schema(
        "exchange_item",
        "Swap a delivered item for another variant of the same product.",
        "order_id sku new_sku",
        order_id=_ORDER,
        sku=_TEXT,
        new_sku=_TEXT,
    ),
    _schema(
        "change_address",
        "Send an order that is still processing to another address.",
        "order_id street city postcode",
        order_id=_ORDER,
        street=_TEXT,
        city=_TEXT,
        postcode=_TEXT,
    ),
]
PARAMETERS: dict[str, Json] = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}


class Refused(Exception):
    """A tool says no; the text becomes the result, after `Error: `."""


@dataclass
class Shop:
    customers: dict[str, Json] = field(default_factory=dict)
    orders: dict[str, Json] = field(default_factory=dict)
    parcels: dict[str, Json] = field(default_factory=dict)  # by order id, what the carrier knows

    def copy(self) -> Shop:
        return copy.deepcopy(self)

    def execute(self, name: str, arguments: Json) -> str:
        """Run one call and give the text an agent sees. A refused call leaves the shop as it was."""
        try:
            if name not in PARAMETERS:
                raise Refused(f"unknown tool '{name}'")
            self._check(name, arguments)
            result = getattr(self, f"_{name}")(**arguments)
        except Refused as refusal:
            return f"Error: {refusal}"
        return json.dumps(result, ensure_ascii=False)

    @staticmethod
    def _check(name: str, arguments: Json) -> None:
        known = PARAMETERS[name]
        for key in known["required"]:
            if key not in arguments:
                raise Refused(f"missing required argument '{key}'")
        for key, value in arguments.items():
            if key not in known["properties"]:
                raise Refused(f"unexpected argument '{key}'")
            pattern = known["properties"][key].get("pattern")
            if pattern and not re.fullmatch(pattern, str(value)):
                raise Refused(f"argument '{key}' must look like Q12345, got '{value}'")

    def _order(self, order_id: str) -> Json:
        if order_id not in self.orders:
            raise Refused(f"order {order_id} not found")
        return self.orders[order_id]

    @staticmethod
    def _item(order: Json, sku: str) -> Json:
        items: list[Json] = order["items"]
        for item in items:
            if item["sku"] == sku:
                return item
        raise Refused(f"{sku} is not part of order {order['order_id']}")

    def _find_customer(self, email: str | None = None, phone: str | None = None) -> Json:
        if email is None and phone is None:
            raise Refused("give an email or a phone number")
        for customer in self.customers.values():
            if email in (None, customer["email"]) and phone in (None, customer["phone"]):
                return customer
        raise Refused(f"no customer with {'email ' + email if email else 'phone ' + str(phone)}")

    def _list_orders(self, customer_id: str) -> list[Json]:
        if customer_id not in self.customers:
            raise Refused(f"customer {customer_id} not found")
        mine = [order for order in self.orders.values() if order["customer_id"] == customer_id]
        mine.sort(key=lambda order: (order["placed"], order["order_id"]), reverse=True)
        return [{key: order[key] for key in ("order_id", "placed", "status", "total")} for order in mine]

    def _get_order(self, order_id: str) -> Json:
        return self._order(order_id)

    def _track_shipment(self, order_id: str) -> Json:
        order = self._order(order_id)
        if order_id not in self.parcels:
            raise Refused(f"order {order_id} has status {order['status']}, there is no parcel to track")
        return self.parcels[order_id]

    def _search_products(self, query: str, max_price: float | None = None) -> list[Json]:
        words = re.findall(r"[a-z0-9]+", query.lower())
        found = []
        for product in CATALOGUE:
            text = f"{product.name} {product.family}".lower()
            if words and all(word in text for word in words) and (max_price is None or product.price <= max_price):
                found.append({k: getattr(product, k) for k in ("sku", "name", "variant", "price", "stock")})
        return found

    def _cancel_order(self, order_id: str, reason: str) -> Json:
        del reason  # kept by the shop's records, which no tool shows: the wording must not decide over a reward
        order = self._order(order_id)
        if order["status"] != "processing":
            raise Refused(f"order {order_id} has status {order['status']} and can no longer be cancelled")
        order["status"] = "cancelled"
        return {"order_id": order_id, "status": "cancelled", "returned_to_card": order["total"]}

    def _refund_order(self, order_id: str, skus: list[str], reason: str) -> Json:
        del reason
        order = self._order(order_id)
        lost = self.parcels.get(order_id, {}).get("status") == "lost"
        if order["status"] != "delivered" and not lost:
            raise Refused(
                f"order {order_id} has status {order['status']}, only delivered or lost orders can be refunded"
            )
        items = [self._item(order, sku) for sku in skus]
        for item in items:
            if item["state"] != "ok":
                raise Refused(f"{item['sku']} was already {item['state']}")
        for item in items:
            item["state"] = "refunded"
        return {"order_id": order_id, "refunded": skus, "amount": sum(item["price"] for item in items)}

    def _exchange_item(self, order_id: str, sku: str, new_sku: str) -> Json:
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise Refused(f"order {order_id} has status {order['status']}, only delivered items can be exchanged")
        item = self._item(order, sku)
        new = next((product for product in CATALOGUE if product.sku == new_sku), None)
        if new is None or new.name != item["name"]:
            raise Refused(f"{new_sku} is not a variant of {item['name']}")
        if item["state"] != "ok":
            raise Refused(f"{sku} was already {item['state']}")
        if not new.stock:
            raise Refused(f"{new_sku} is out of stock")
        item["state"] = f"exchanged for {new_sku}"
        return {"order_id": order_id, "exchanged": sku, "for": new_sku, "label": f"RET-{order_id[1:]}"}

    def _change_address(self, order_id: str, street: str, city: str, postcode: str) -> Json:
        order = self._order(order_id)
        if order["status"] != "processing":
            raise Refused(f"order {order_id} has status {order['status']}, its address can no longer change")
        order["ship_to"] = {"street": street, "city": city, "postcode": postcode}
        return {"order_id": order_id, "ship_to": order["ship_to"]}
