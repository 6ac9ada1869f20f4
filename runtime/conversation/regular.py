"""Rows of regular conversations by columns: a whole batch at once, each row as `training` makes it one by one.

A run is regular where
- its parts are texts, and only the agent's assistant makes calls,
- each call has a name, an id of its own (a missing one is made up as ever) and arguments that the form can say,
- results stand right behind their calls, and each call has one, but for those of the message that ends the row,
- system messages come first, its tools can be read, and its weights are 0 or 1,
- content holds no tag of reasoning where reasoning is left out,
- its row need not be cut to fit.
Any other is odd: its rows, or why it gives none, are what `training` says.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from curatec.compiler import plan
from curatec.compiler.text import estimate_tokens
from curatec.runtime.conversation import messages as m
from curatec.runtime.conversation import thinking
from curatec.runtime.json_columns import json_text

_ASSISTANT = pl.col("role") == "assistant"
_TOOL = pl.col("role") == "tool"
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace())  # what `str.strip` strips


@dataclass(frozen=True, slots=True)
class Regular:
    """What becomes of the runs of a batch; tables are in the order of what they are about.

    `runs`, one row each: `run`, `odd`; where it is not odd, `lost` (why it gives no row, null where it gives one),
    `detail` (how long it is), `behind` (messages after the last trained one), `n_tokens`, `n_trained`.
    `messages` of the rows: `at`, `run`, `message` (its number in the row), `turn`, `role`, `content`, `reasoning`,
    `n_calls`, of a result `call_id` and `name`; `weight` is 1 or 0; `said`: its content is trained where it weighs 1;
    `whole`: nothing that it shows is left out of that.
    `calls` of these messages: `at`, `run`, `message`, `weight` (as there), `k` (its number in the message), `id`,
    `function` (JSON text).
    """

    runs: pl.DataFrame
    messages: pl.DataFrame
    calls: pl.DataFrame

    @property
    def told(self) -> pl.DataFrame:
        """The runs that give a row."""
        return self.runs.filter(~pl.col("odd") & pl.col("lost").is_null())


def regular(turns: pl.DataFrame, toolsets: pl.Series, target: plan.Sft, form: m.Form, tools: m.Tools) -> Regular:
    """`turns`: those of a batch, sorted, with `run` and `weight`; `toolsets`: one key for each of its runs."""
    shown = _shown(turns)
    calls = _calls(shown, form)
    shown = shown.drop("calls")
    used = _linked(_marked(shown, calls, target), calls)
    silent_calls = (pl.col("role") == "event") & (pl.col("calls").list.len() > 0)  # their ids are taken all the same
    odd = [
        turns.filter(m.MEDIA | silent_calls)["run"],
        shown.filter(_odd(target))["run"],
        calls.filter("odd")["run"],
        _out_of_step(used),
    ]
    unread = [key for key in toolsets.drop_nulls().unique() if tools(key)[1] is not None]
    runs = _runs(shown, used, len(toolsets)).with_columns(
        odd=pl.col("run").is_in(pl.concat(odd).implode()) | pl.lit(toolsets.is_in(unread).fill_null(False))
    )
    runs = _fitted(runs, target)
    told = (~runs["odd"] & runs["lost"].is_null()).gather(used["run"])
    start = runs["start"].gather(used["run"])
    messages = used.with_columns(message=pl.col("at") - start).filter(told)
    calls = calls.join(messages.select("at", "message", "weight"), on="at", maintain_order="left")
    return Regular(runs, messages, calls)


def _shown(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns that may become messages. `first` is the position of its first call among all calls."""
    role, n_calls = pl.col("role").cast(pl.String), pl.col("calls").list.len().cast(pl.Int64)
    shown = turns.with_columns(role).filter(pl.col("role") != "event")
    return shown.select(
        "run",
        "turn",
        "role",
        "content",
        "calls",
        "call_turn",
        "call_index",
        "weight",
        at=pl.int_range(pl.len()),
        reasoning=pl.when(_ASSISTANT & (pl.col("reasoning") != "")).then("reasoning"),
        name=pl.when(_TOOL & (pl.col("tool_name") != "")).then("tool_name"),
        n_calls=n_calls,
        first=n_calls.cum_sum() - n_calls,
    )


def _odd(target: plan.Sft) -> pl.Expr:
    """Messages that no regular run has."""
    behind = (pl.col("run") == pl.col("run").shift(1)) & (pl.col("role").shift(1) != "system")
    odd = (
        ~pl.col("weight").is_in([0.0, 1.0])
        | ((pl.col("n_calls") > 0) & ~_ASSISTANT)
        | ((pl.col("role") == "system") & behind.fill_null(False))
    )
    if target.loss.except_reasoning or target.reasoning != "keep":
        tags = (pl.col("content").str.contains(tag, literal=True) for tag in (thinking.OPEN, thinking.CLOSE))
        odd = odd | (_ASSISTANT & pl.any_horizontal(*tags).fill_null(False))
    return odd


# ---- calls ----


def _calls(shown: pl.DataFrame, form: m.Form) -> pl.DataFrame:
    """One row a call, in order. `odd`: no regular run has such a call."""
    flat = shown.select("at", "run", "turn", "first", "calls").explode("calls", empty_as_null=False, keep_nulls=False)
    flat = flat.unnest("calls").with_columns(k=pl.int_range(pl.len()) - pl.col("first"))
    made_up = pl.concat_str(pl.lit("call_"), "turn", pl.lit("_"), "k")
    flat = flat.with_columns(id=pl.when(pl.col("id") != "").then("id").otherwise(made_up))
    none = pl.col("args_state") == "none"
    said = _spoken_arguments(form)
    odd = (
        (pl.col("requestor") == "user")
        | pl.col("name").is_null()
        | (pl.col("name") == "")
        | (~none & said.is_null())
        | pl.struct("run", "id").is_duplicated()
    )
    if form == "trl":
        odd = odd | _perhaps_unreadable(pl.col("args_json")).fill_null(False)
    arguments = said.fill_null("{}")
    function = pl.concat_str(
        pl.lit('{"name":'),
        json_text(pl.col("name")),
        pl.lit(',"arguments":'),
        arguments if form == "trl" else json_text(arguments),
        pl.lit("}"),
    )
    spoken = pl.coalesce(estimate_tokens(pl.col("args_json")), estimate_tokens(pl.col("args_raw")), 0)
    tokens = estimate_tokens(pl.col("name")) + spoken
    return flat.select("at", "run", "k", "id", odd=odd, function=function, tokens=tokens)


def _spoken_arguments(form: m.Form) -> pl.Expr:
    """Arguments in the source's words, as an object's text or as the text of a string; null where there are none."""
    if form == "trl":
        return pl.col("args_json").str.replace_all("\n", " ", literal=True).str.replace_all("\r", " ", literal=True)
    read = pl.col("args_raw").is_null() | (pl.col("args_state") == "repaired")
    none = pl.col("args_state") == "none"
    return pl.when(~none).then(pl.when(read).then("args_json").otherwise("args_raw"))


def _perhaps_unreadable(text: pl.Expr) -> pl.Expr:
    """What `messages.unreadable` would look at more closely."""
    brackets = text.str.count_matches("[", literal=True) + text.str.count_matches("{", literal=True)
    return text.str.contains("[0-9]{19}") | ((text.str.len_bytes() > m.DEPTH) & (brackets > m.DEPTH))


# ---- what is trained ----


def _marked(shown: pl.DataFrame, calls: pl.DataFrame, target: plan.Sft) -> pl.DataFrame:
    """The messages up to the last trained one of each run, with what is trained of each."""
    loss = target.loss
    content = pl.col("content")
    thought = pl.col("reasoning").is_not_null() & (not loss.except_reasoning)
    said = ((content.str.strip_chars(_BLANKS) if loss.except_reasoning else content) != "").fill_null(False)
    carries = (pl.col("weight") > 0) & (said | thought | (pl.col("n_calls") > 0))
    last = pl.when("carries").then("at").max().over("run")
    spoken = calls.group_by("at").agg(call_tokens=pl.col("tokens").sum())
    marked = shown.join(spoken, on="at", how="left", maintain_order="left")
    if target.reasoning == "strip":
        marked = marked.with_columns(reasoning=pl.lit(None, dtype=pl.String))
    marked = marked.with_columns(said=said, carries=carries).with_columns(last=last)
    if target.reasoning == "last":
        earlier = pl.col("at") < pl.col("last")
        marked = marked.with_columns(reasoning=pl.when(~earlier).then("reasoning")).with_columns(carries=carries)
    marked = marked.filter(pl.col("at") <= pl.col("last"))
    trained = pl.col("carries") & ((pl.col("at") == pl.col("last")) if loss.only_last else True)
    thoughts, said_tokens = (estimate_tokens(text).fill_null(0) for text in (pl.col("reasoning"), content))
    called = pl.col("call_tokens").fill_null(0)
    kept = called + pl.when("said").then(said_tokens).otherwise(0) + (0 if loss.except_reasoning else thoughts)
    return marked.with_columns(
        weight=trained.cast(pl.Float64),
        whole=pl.col("reasoning").is_null() | (not loss.except_reasoning),
        n_tokens=thoughts + said_tokens + called,
        n_trained=pl.when(trained).then(kept).otherwise(0),
    )


# ---- runs ----


def _linked(used: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """`block` numbers the messages that are no results, each with the results behind it; a result that answers a call
    of its block (`fits`) has the `call_id`."""
    head = ~_TOOL
    used = used.with_columns(
        block=head.cum_sum(),
        asked=pl.when(head).then("turn").forward_fill(),
        asker=pl.when(head).then("run").forward_fill(),
        offered=pl.when(head).then("n_calls").forward_fill(),
        offer=pl.when(head).then("first").forward_fill(),
    ).with_columns(
        fits=(
            _TOOL
            & (pl.col("asker") == pl.col("run"))
            & (pl.col("asked") == pl.col("call_turn"))
            & (pl.col("call_index") < pl.col("offered"))
        ).fill_null(False)
    )
    answered = used.select(pl.when("fits").then(pl.col("offer") + pl.col("call_index"))).to_series()
    return used.with_columns(call_id=calls["id"].gather(answered)).drop("first", "offer", "asked", "asker")


def _out_of_step(used: pl.DataFrame) -> pl.Series:
    """Runs with a result that does not fit, or a second one, or with a call that has none."""
    results = used.filter(_TOOL)
    wrong = results.filter(~pl.col("fits") | pl.struct("block", "call_index").is_duplicated())["run"]
    counts = results.group_by("block").agg(results=pl.len().cast(pl.Int64))
    asking = used.filter(~_TOOL & (pl.col("n_calls") > 0) & (pl.col("at") < pl.col("last")))
    asking = asking.join(counts, on="block", how="left")
    return pl.concat([wrong, asking.filter(pl.col("results").fill_null(0) != pl.col("n_calls"))["run"]])


def _runs(shown: pl.DataFrame, used: pl.DataFrame, n: int) -> pl.DataFrame:
    """One row a run. `start` is the position of its first message."""
    all_ = shown.group_by("run").agg(n_shown=pl.len().cast(pl.Int64))
    sums = used.group_by("run").agg(
        pl.col("n_tokens", "n_trained").sum(), n_used=pl.len().cast(pl.Int64), start=pl.col("at").first()
    )
    runs = pl.DataFrame({"run": pl.int_range(n, dtype=pl.UInt32, eager=True)})
    for found in (all_, sums):
        runs = runs.join(found, on="run", how="left", maintain_order="left")
    return runs.with_columns(
        behind=pl.col("n_shown") - pl.col("n_used"),
        lost=pl.when(pl.col("n_shown").is_null())
        .then(pl.lit("no_turns"))
        .when(pl.col("n_used").is_null())
        .then(pl.lit("no_trained_text")),
        detail=pl.lit(None, dtype=pl.String),
    )


def _fitted(runs: pl.DataFrame, target: plan.Sft) -> pl.DataFrame:
    if target.fit_tokens is None:
        return runs
    long = pl.col("lost").is_null() & (pl.col("n_tokens") > target.fit_tokens)
    if target.overflow != "drop":
        return runs.with_columns(odd=pl.col("odd") | long)
    return runs.with_columns(
        lost=pl.when(long).then(pl.lit("over_length")).otherwise("lost"),
        detail=pl.when(long).then(pl.format("{} tokens", "n_tokens")),
    )
