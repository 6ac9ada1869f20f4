"""`emit sft`: conversations with the exact text that is trained. What becomes a row: `conversation/training.py`."""

from __future__ import annotations

from curatec.compiler import plan
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime import targets
from curatec.runtime.sinks import sft_trainer, trainer
from curatec.runtime.sinks.account import Account
from curatec.runtime.sinks.buckets import SIZE, Sorted
from curatec.runtime.sinks.columns import COMMON, Col
from curatec.runtime.sinks.files import Files
from curatec.runtime.sinks.place import WINDOWS, Place
from curatec.runtime.sinks.sft_rows import Fractional, Rows
from curatec.runtime.sinks.sft_trainer import Masks
from curatec.runtime.sinks.written import Written

TURNS = Col("turns", "ints", "the turn of the source that each message is, as `curatec why --turn` counts")
MASK = (
    Col("weights", "floats", "loss weight of each message"),
    Col(
        "trained",
        "spans",
        "code points [start, end) of a message's content, reasoning or call (its `function` as JSON) that are trained",
    ),
)
HALVES = (
    Col("prompt", "objects", "the messages before the trained one"),
    Col("completion", "objects", "the trained message"),
)
TOKENS = (
    Col("input_ids", "ints", "the row as the chat template shows it, in tokens"),
    Col("labels", "ints", "the id of each trained token, -100 elsewhere"),
)


def columns(target: plan.Sft, *, rendered: bool = False) -> tuple[Col, ...]:
    """`only last` gives the halves as well: a trainer then knows the mask without any template. `render` gives the
    tokens, for a trainer that takes them as they are."""
    own = targets.columns(targets.target(target.format), "sft")
    mask = (TURNS, *MASK) if target.format in targets.CHATS else (TURNS,)
    halves = HALVES if target.loss.only_last and target.format in targets.CHATS else ()
    return (*COMMON, *own, *mask, *halves, *(TOKENS if rendered and target.format in targets.CHATS else ()))


def write(place: Place, target: plan.Sft) -> Written:
    """Files, ledger rows and account of an sft sink."""
    state, rendered = place.placed, place.state.renderer is not None
    shape, shown = columns(target, rendered=rendered), _shown(target, rendered=rendered)
    maker = Rows(state, target, shape, shown)
    rows, account, masks, fractional = Sorted(place.scratch, SIZE * WINDOWS), Account(), Masks(), list[Fractional]()
    for made in state.map_batches(lambda _, frames: maker.of(frames), maker.turn_columns):
        for some in made.rows:
            rows.add(some)
        for some in made.fates:
            account.take(some)
        masks.join(made.masks)
        fractional += made.fractional
    _refuse_fractional(fractional, place, target)
    with Files(place.folder, shape, shown=shown) as files:
        for some in rows:
            files.add(some)
    settings = sft_trainer.settings(
        target, masks, trainer.files(files.names), shape, in_order=place.sorted, renderer=state.renderer
    )
    names = (*files.names, trainer.write(place.folder, settings))
    sums = account.close(place.ledger, place.name)
    return Written(
        place.name,
        place.named(names),
        sums.rows,
        state.rows.height,
        sums.dropped,
        sums.rejected,
        created=sums.created,
        replaced=sums.replaced,
        tokens=sums.tokens,
        trained_tokens=sums.trained_tokens,
        exact=rendered,
        lineage=sums.lineage,
        notes=sft_trainer.notes(masks, target, rendered=rendered),
    )


def _shown(target: plan.Sft, *, rendered: bool) -> tuple[Col, ...]:
    """The columns of JSON lines: a format that allows no others has its own alone."""
    format_ = targets.target(target.format)
    return targets.columns(format_, "sft") if format_.strict else columns(target, rendered=rendered)


def _refuse_fractional(found: list[Fractional], place: Place, target: plan.Sft) -> None:
    """A trainer with 0/1 masks cannot mean half a weight (semantics 31)."""
    if not found:
        return
    _, id_, turn, weight = min(found)
    raise CuratecError.of(
        "C0611",
        f"`{target.format}` masks are 0 or 1, and turn {turn} of `{id_}` weighs {weight:g}",
        help=(
            f"{len(found)} rows of `emit {place.name}` have such a weight",
            "say which turns are trained with `loss on assistant where …`, how often a row stands with `mix`",
        ),
    )
