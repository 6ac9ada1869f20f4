"""Which columns of TURNS an expression reads: a pass over the turns loads no others.

Exact, as `compiler.frames` computes: none of them can be left out. `row` is among them wherever turns are read at all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from curatec.compiler.content import TRAJECTORY_CONTENT
from curatec.compiler.core import Column, Core, Path, Quantifier, children, walk
from curatec.compiler.types import Level

_ROW = frozenset({"row"})
_CALLS = _ROW | {"turn", "calls"}  # the table of calls, each with the place of its result
_NEIGHBOURS = _ROW | {"turn", "role", "call_turn"}
_SAID = {"content", "reasoning", "calls"}  # what an estimate of tokens counts
# What a template is given of a conversation, and which of it carries loss.
_SHOWN = _SAID | {
    "turn", "role", "content_kind", "parts", "tool_name", "call_turn", "call_index", "loss_weight", "copied_context",
}  # fmt: skip

WIDE = frozenset({"content", "reasoning", "calls", "parts"})  # texts and calls are most of the bytes

_TURN = {"index": _ROW, "calls_text": _ROW | {"calls"}, "tokens": _ROW | _SAID}
_CALL = {"result": _CALLS | {"content"}, "is_error": _CALLS | {"is_error"}}
_TRAJECTORY = {
    "turn_count": _ROW | {"role"},
    "assistant_turns": _ROW | {"role"},
    "call_count": _ROW | {"calls"},
    "error_count": _ROW | {"role", "is_error"},
    "tokens": _ROW | _SAID | {"role"},
    "trained_tokens": _ROW | _SAID | {"role", "loss_weight", "copied_context"},
    "text": _ROW | {"role", "content"},
    "task_text": _ROW | {"role", "content"},
    "final_answer": _ROW | {"role", "content"},
    "calls_text": _ROW | {"calls"},
    "tool_names": _CALLS,
}
assert _TRAJECTORY.keys() == TRAJECTORY_CONTENT.keys()
# What it takes to know the rows of a level; tools stand beside the turns.
_ROWS = {Level.TRAJECTORY: frozenset[str](), Level.TURN: _ROW, Level.CALL: _CALLS, Level.TOOL: frozenset[str]()}


def needs_turns(core: Core, known: Container[Core] = ()) -> bool:
    """Whether a trajectory-level expression reads anything below the trajectory; what is known already does not."""
    return core not in known and (bool(_own_columns(core)) or any(needs_turns(c, known) for c in children(core)))


def turn_columns_of(
    cores: Iterable[Core], level: Level = Level.TRAJECTORY, *, rendered: bool = False
) -> frozenset[str]:
    """What expressions read, together, to have a value for each row of a level. `rendered`: a template counts the
    tokens of trajectories, no estimate."""
    found = _ROWS[level]
    for core in cores:
        for node in walk(core):
            found |= _own_columns(node)
            if rendered and isinstance(node, Column) and _counts_tokens(node):
                found |= _SHOWN
    return found


def along(ahead: Iterable[Core], read: frozenset[str]) -> list[Core]:
    """What of later questions a pass over the turns answers as well: those that need none of the large columns besides
    what it reads. For the others a pass of their own, over the runs that are left then, is cheaper."""
    return [core for core in ahead if turn_columns_of([core]) & WIDE <= read]


def shares_work(core: Core, others: Iterable[Core]) -> bool:
    """Whether it asks something of texts or calls that others ask as well: that is computed once."""
    return not _work(core).isdisjoint(node for other in others for node in _work(other))


def _work(core: Core) -> set[Core]:
    """The parts that are computed from large columns, and are not such a column."""
    found = (n for n in walk(core) if not isinstance(n, Column) or n.level is Level.TRAJECTORY)
    return {node for node in found if turn_columns_of([node]) & WIDE}


def _counts_tokens(column: Column) -> bool:
    return column.level is Level.TRAJECTORY and column.name in ("tokens", "trained_tokens")


def _own_columns(node: Core) -> frozenset[str]:
    """What a node reads itself, whatever stands below it."""
    match node:
        case Quantifier(over=Level.TURN):
            return _ROW
        case Quantifier(over=Level.CALL):
            return _CALLS
        case Path(base=Column(level=Level.CALL)) | Column(level=Level.TOOL, name="used"):
            return _CALLS
        case Column(level=Level.TRAJECTORY, name=name):
            return _TRAJECTORY.get(name, frozenset())
        case Column(level=Level.TURN, name=name, via=via):
            return _TURN.get(name, _ROW | {name}) | (_NEIGHBOURS if via else frozenset())
        case Column(level=Level.CALL, name=name):
            return _CALL.get(name, _CALLS)
    return frozenset()
