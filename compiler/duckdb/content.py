"""Content columns of a trajectory as aggregates of its turns or calls: the SQL of `compiler/content.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from curatec.compiler.duckdb.spelling import Sql
from curatec.compiler.types import Level

Columns = Callable[[str], Sql]  # a column of the table that is grouped


@dataclass(frozen=True, slots=True)
class Content:
    """`aggregate` is over the rows of `over`, `finish` says what a trajectory without any has."""

    over: Level
    aggregate: Callable[[Columns], str]
    finish: Callable[[Sql], Sql] = lambda value: value


def _or_zero(value: Sql) -> Sql:
    return Sql(f"coalesce({value}, 0)")


def _number(where: Callable[[Columns], str]) -> Content:
    return Content(Level.TURN, lambda c: f"count(*) filter (where {where(c)})", _or_zero)


def _spoken(c: Columns) -> str:
    return f"{c('role')} not in ('system', 'event')"


def _text(c: Columns) -> str:
    """Null without such turns, "" where none of them has content."""
    return (
        f"case when count(*) filter (where {_spoken(c)}) > 0 then coalesce("
        f"string_agg({c('content')}, E'\\n' order by turns.turn_at) filter (where {_spoken(c)}), '') end"
    )


def _trained(c: Columns) -> str:
    return f"{c('role')} = 'assistant' and {c('loss_weight')} > 0 and not {c('copied_context')}"


def _tokens(where: Callable[[Columns], str]) -> Content:
    return Content(Level.TURN, lambda c: f"(sum({c('tokens')}) filter (where {where(c)}))::BIGINT", _or_zero)


CONTENT: dict[str, Content] = {
    "turn_count": _number(_spoken),
    "assistant_turns": _number(lambda c: f"{c('role')} = 'assistant'"),
    "call_count": Content(Level.CALL, lambda c: "count(*)", _or_zero),
    "error_count": _number(lambda c: f"{c('role')} = 'tool' and {c('is_error')}"),
    "tokens": _tokens(lambda c: f"{c('role')} <> 'event'"),
    "trained_tokens": _tokens(_trained),
    "text": Content(Level.TURN, _text),
    "task_text": Content(
        Level.TURN, lambda c: f"arg_min_null({c('content')}, turns.turn_at) filter (where {c('role')} = 'user')"
    ),
    "final_answer": Content(
        Level.TURN,
        lambda c: (
            f"arg_max({c('content')}, turns.turn_at) filter (where {c('role')} = 'assistant' and {c('content')} <> '')"
        ),
    ),
    "calls_text": Content(Level.TURN, lambda c: f"string_agg({c('calls_text')}, E'\\n' order by turns.turn_at)"),
    "tool_names": Content(
        Level.CALL,
        lambda c: f"list(distinct {c('name')} order by {c('name')}) filter (where {c('name')} is not null)",
        lambda value: Sql(f"coalesce({value}, [])"),
    ),
}
RENDERED = ("tokens", "trained_tokens")  # a template counts them otherwise
