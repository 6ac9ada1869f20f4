"""Quotas that go over more than one key: `limit … per each LIST`, and `mix` (semantics 12, 18, 25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import floor

import polars as pl

from curatec.compiler import plan, text
from curatec.runtime.conversation.training import trained_tokens
from curatec.runtime.state import State
from curatec.runtime.steps.groups import in_order
from curatec.runtime.steps.step import Place, apply

_AT_ONCE = 2**16  # rows


# ---- per each ----


@apply.register
def _(operation: plan.LimitEach, state: State, place: Place) -> State:
    """A row stays while any of its elements has room; then all of its elements have one more."""
    measured, [each, *order] = state.values([operation.each, *(o.value for o in operation.order)], place.ahead)
    rows = measured.rows
    ordered = in_order(state.engine, rows["id"], order, [o.descending for o in operation.order])
    kept, taken = list[bool](), Counter[str]()
    for own in _elements(each.gather(ordered)):
        room = not own or any(taken[element] < operation.count for element in own)
        kept.append(room)
        if room:
            taken.update(own)
    mask = pl.DataFrame({"at": ordered, "kept": kept}, schema_overrides={"kept": pl.Boolean}).sort("at")["kept"]
    shown = each.filter(~mask).list.join(", ")
    place.drop(rows.filter(~mask)["id"], key=shown, reason="over the limit")
    after = measured.keep(mask)
    place.count(state, after, null_key=int((each.list.len().fill_null(0) == 0).sum()))
    return after


def _elements(lists: pl.Series) -> Iterator[set[str]]:
    """The distinct elements of each list, a piece of the column after the other: as Python texts all would be large."""
    for piece in lists.to_frame().iter_slices(_AT_ONCE):
        for elements in piece.to_series().to_list():
            yield {element for element in elements or () if element is not None}


# ---- mixes ----


@apply.register
def _(operation: plan.Mix, state: State, place: Place) -> State:
    """Rows of each source in the order of their draws, as long as they fit into its part."""
    rows, amounts = state.rows, _amounts(operation, state)
    sources = rows["source"].to_list()
    available = Counter[str]()
    for source, amount in zip(sources, amounts, strict=True):
        available[source] += amount
    room = _room(operation, available, place) if rows.height else {}
    kept = [False] * rows.height
    for i in in_order(state.engine, rows["id"], [text.draw("mix", 0, rows["digest"])], [False]):
        if amounts[i] <= room.get(sources[i], -1):
            kept[i] = True
            room[sources[i]] -= amounts[i]
    mask = pl.Series(kept, dtype=pl.Boolean)
    gone = rows.filter(~mask)
    place.drop(gone["id"], key=gone["source"], reason="over its share")
    after = state.keep(mask)
    place.count(state, after)
    return after


def _amounts(operation: plan.Mix, state: State) -> list[int]:
    """What each row counts: 1, or the tokens that the sink trains of it."""
    if operation.target is None:
        return [1] * state.rows.height
    from curatec.runtime import targets  # they build on sinks, which build on steps

    trained = trained_tokens(state, operation.target, targets.target(operation.target.format).form)
    return [trained.get(id_, 0) for id_ in state.rows["id"]]


def _room(operation: plan.Mix, available: Mapping[str, int], place: Place) -> dict[str, int]:
    """How much of each source there is to be. Raises CuratecError (C0632) where that cannot be had."""
    what = "rows" if operation.target is None else "trained tokens"
    wanted = {name: Fraction(str(share)) for name, share in operation.shares if share}
    if place.partial:  # of some sources there may be nothing here
        wanted = {name: share for name, share in wanted.items() if available[name]}
    empty = next((name for name in wanted if not available[name]), None)
    if empty is not None:
        raise place.fail(
            "C0632",
            f"source `{empty}` has no {what} here, and {float(100 * wanted[empty]):g}% of the mix are to be its",
            "give it `0%`, or look at the steps before: `curatec try SPEC` shows what each leaves",
        )
    most = _most(wanted, available)
    if operation.to is None or operation.at_most or place.partial:
        return _quotas(wanted, most if operation.to is None else min(most, operation.to))
    if most >= operation.to:
        return _quotas(wanted, operation.to)
    short = min(wanted, key=lambda name: available[name] / wanted[name])
    need = _quotas(wanted, operation.to)[short]
    raise place.fail(
        "C0632",
        f"source `{short}` has {available[short]:,} {what}, and {need:,} of {operation.to:,} are to be its",
        f"ask for {most:,} or fewer, write `to at most {operation.to}`, or change the shares",
    )


def _most(shares: Mapping[str, Fraction], available: Mapping[str, int]) -> int:
    """The largest total whose quotas all sources can fill."""
    whole = sum(shares.values())
    total = floor(min((Fraction(available[name] + 1) * whole / share for name, share in shares.items()), default=0))
    while any(quota > available[name] for name, quota in _quotas(shares, total).items()):
        total -= 1
    return total


def _quotas(shares: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Whole parts of a total in given shares, by largest remainder; ties go to the name that comes first."""
    whole = sum(shares.values())
    exact = {name: share / whole * total for name, share in shares.items()}
    quotas = {name: floor(part) for name, part in exact.items()}
    left = total - sum(quotas.values())
    for name in sorted(exact, key=lambda name: (quotas[name] - exact[name], name))[:left]:
        quotas[name] += 1
    return quotas
