"""Which call a result answers. The one place where results are linked, for every format.

1. By id: the nearest earlier turn with a call of that id that no result has answered yet; inside a turn, in order.
2. A result without an id, or whose id no call has: by position, among the calls of the last calling turn that have no
   id of their own or when the result has none; the first unanswered one with the result's tool name, else the first.
3. Otherwise the result is an orphan.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model import Call, Turn

_Open = tuple[int, int, Call]  # turn, position in the turn, call


def link(turns: Sequence[Turn], *, call_ids: bool) -> set[str]:
    """Fills in `result_turn`, `call_turn`, `call_index` and missing tool names; returns the defects found on the way.

    `call_ids`: the format has an id for every call and result, so that a missing one is a defect.
    """
    notes: set[str] = set()
    open_calls: list[_Open] = []
    latest = -1
    seen: set[str] = set()
    for index, turn in enumerate(turns):
        for position, call in enumerate(turn.calls):
            open_calls.append((index, position, call))
            latest = index
            if call.id is None:
                if call_ids:
                    notes.add("missing_call_id")
            elif call.id in seen:
                notes.add("duplicate_call_id")
            else:
                seen.add(call.id)
        if turn.role != "tool":
            continue
        if turn.tool_call_id is None and call_ids:
            notes.add("missing_result_id")
        found = _answered(turn, open_calls, latest, seen)
        if found is None:
            notes.add("orphan_result")
            continue
        turn.call_turn, turn.call_index, call = found
        call.result_turn = index
        if turn.tool_name is None:
            turn.tool_name = call.name
        open_calls.remove(found)
    return notes | _ending(turns, open_calls)


def _answered(turn: Turn, open_calls: list[_Open], latest: int, ids: set[str]) -> _Open | None:
    wanted = turn.tool_call_id
    if wanted is not None and wanted in ids:
        same = [entry for entry in open_calls if entry[2].id == wanted]
        return next((entry for entry in same if entry[0] == same[-1][0]), None)
    here = [entry for entry in open_calls if entry[0] == latest and (wanted is None or entry[2].id is None)]
    named = (entry for entry in here if turn.tool_name is not None and entry[2].name == turn.tool_name)
    return next(named, here[0] if here else None)


def _ending(turns: Sequence[Turn], open_calls: list[_Open]) -> set[str]:
    last = max((index for index, turn in enumerate(turns) if turn.role != "event"), default=-1)
    notes = {"ends_on_call" if entry[0] == last else "orphan_call" for entry in open_calls}
    if last >= 0 and turns[last].role == "tool":
        notes.add("ends_on_tool")
    return notes
