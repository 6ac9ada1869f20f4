"""Statements of a strategy: steps, sinks and their settings. The text form of each is in the docstring."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curatec.dsl.expr import Call, Expr, Literal_, Number, OrderKey, Text
from curatec.dsl.nodes import Name, Node

OnFail = Literal["keep", "drop", "stop"]


class Share(Node):
    """`train 90%`."""

    kind: Literal["share"] = "share"
    name: Name
    percent: Number


class Range(Node):
    """`low .. high`, both ends in."""

    kind: Literal["range"] = "range"
    low: Number
    high: Number


class Choices(Node):
    """`{a, b}`."""

    kind: Literal["choices"] = "choices"
    values: tuple[Literal_, ...]


class Statement(Node):
    """What every step may carry: `label: … because "…" see "…"`."""

    label: Name | None = None
    because: str | None = None
    see: tuple[str, ...] = ()


class From(Statement):
    """`from a, b`."""

    kind: Literal["from"] = "from"
    sources: tuple[Name, ...]


class Join(Statement):
    """`join t on E [required]`."""

    kind: Literal["join"] = "join"
    table: Name
    on: Expr
    required: bool = False


class Split(Statement):
    """`split by E [near text 0.8] { train 90% validation 10% } [seed N]`."""

    kind: Literal["split"] = "split"
    by: Expr
    near: Name | None = None
    near_threshold: Number | None = None
    shares: tuple[Share, ...]
    seed: int = 0


class Render(Statement):
    """`render "tokenizer" [template "path"]`."""

    kind: Literal["render"] = "render"
    tokenizer: Text
    template: Text | None = None


class View(Statement):
    """`view agent`, `view user`."""

    kind: Literal["view"] = "view"
    side: Name


class Filter(Statement):
    """`keep where E`, `drop where E`."""

    kind: Literal["filter"] = "filter"
    verb: Literal["keep", "drop"]
    where: Expr


class TurnsFilter(Statement):
    """`turns keep where E [repair]`, `turns drop where E [repair]`."""

    kind: Literal["turns_filter"] = "turns_filter"
    verb: Literal["keep", "drop"]
    where: Expr
    repair: bool = False


class TurnsSet(Statement):
    """`turns set content = E [where E]`."""

    kind: Literal["turns_set"] = "turns_set"
    field: Name
    value: Expr
    where: Expr | None = None


class TurnsCut(Statement):
    """`turns cut after first where E [repair]`."""

    kind: Literal["turns_cut"] = "turns_cut"
    side: Literal["after", "before"]
    pick: Literal["first", "last"]
    where: Expr
    repair: bool = False


class ToolsFilter(Statement):
    """`tools keep where used`."""

    kind: Literal["tools_filter"] = "tools_filter"
    verb: Literal["keep", "drop"]
    where: Expr


class Redact(Statement):
    """`redact pii, secrets in all`."""

    kind: Literal["redact"] = "redact"
    families: tuple[Name, ...]
    scope: Name


class DedupExact(Statement):
    """`dedup exact on E, … [best by E desc, …]`."""

    kind: Literal["dedup_exact"] = "dedup_exact"
    on: tuple[Expr, ...]
    best: tuple[OrderKey, ...] = ()


class DedupNear(Statement):
    """`dedup near on E threshold T [over (k, …)] [best by …]`."""

    kind: Literal["dedup_near"] = "dedup_near"
    on: Expr
    threshold: Number
    over: tuple[Expr, ...] = ()
    best: tuple[OrderKey, ...] = ()


class Limit(Statement):
    """`limit N [per k, …] [order by …]`, `limit N per each LIST [order by …]`."""

    kind: Literal["limit"] = "limit"
    count: Number
    per: tuple[Expr, ...] = ()
    each: bool = False
    order: tuple[OrderKey, ...] = ()


class Sample(Statement):
    """`sample N [per k] [seed S]`, `sample P% [per k] [seed S]`."""

    kind: Literal["sample"] = "sample"
    amount: Number
    per: tuple[Expr, ...] = ()
    seed: int = 0


class Mix(Statement):
    """`mix { a 70% b 30% } [by trained_tokens] [to [at most] N]`."""

    kind: Literal["mix"] = "mix"
    shares: tuple[Share, ...]
    by: Name | None = None
    to: Number | None = None
    at_most: bool = False


class Derive(Statement):
    """`derive n = E`."""

    kind: Literal["derive"] = "derive"
    name: Name
    value: Expr


class Tag(Statement):
    """`tag failure`."""

    kind: Literal["tag"] = "tag"


class Context(Node):
    """`context { system, task, last 5 results, all calls, elide "…" }`."""

    kind: Literal["context"] = "context"
    system: bool = False
    task: bool = False
    last_results: int | None = None
    all_calls: bool = False
    elide: str | None = None


class Decompose(Statement):
    """`decompose at E [context { … }]`."""

    kind: Literal["decompose"] = "decompose"
    at: Expr
    context: Context | None = None


class Augment(Statement):
    """`augment rebind(entities: ["user_id"], copies: 2)`."""

    kind: Literal["augment"] = "augment"
    call: Call


class Verdict(Node):
    """What a judge answers: `n: bool`, `n: int in 1 .. 5`, `n in {a, b}`."""

    kind: Literal["verdict"] = "verdict"
    name: Name
    range: Range | None = None
    choices: Choices | None = None


class Judge(Statement):
    """`judge [turns] n: bool using MODEL \"\"\"…\"\"\" [votes N] [on fail keep]`."""

    kind: Literal["judge"] = "judge"
    turns: bool = False
    verdict: Verdict
    model: Name
    prompt: Text
    votes: int = 1
    on_fail: OnFail = "keep"


class Rewrite(Statement):
    """`rewrite f using MODEL \"\"\"…\"\"\" [where E] [on fail keep]`."""

    kind: Literal["rewrite"] = "rewrite"
    field: Name
    model: Name
    prompt: Text
    where: Expr | None = None
    on_fail: OnFail = "keep"


class Decontaminate(Statement):
    """`decontaminate against SET [ngram N]`."""

    kind: Literal["decontaminate"] = "decontaminate"
    against: Name
    ngram: int | None = None


class Sort(Statement):
    """`sort by E [desc], …`."""

    kind: Literal["sort"] = "sort"
    by: tuple[OrderKey, ...]


class Expect(Statement):
    """`expect E`."""

    kind: Literal["expect"] = "expect"
    condition: Expr


# ---- settings of sinks ----


class Loss(Statement):
    """`loss on assistant [except reasoning] [only last] [including edited] [where E] [weight E]`."""

    kind: Literal["loss"] = "loss"
    on: Name
    except_reasoning: bool = False
    only_last: bool = False
    including_edited: bool = False
    where: Expr | None = None
    weight: Expr | None = None


class Fit(Statement):
    """`fit N tokens else drop | window | cut oldest exchange`."""

    kind: Literal["fit"] = "fit"
    tokens: Number
    otherwise: Literal["drop", "window", "cut"]


class ReasoningShown(Statement):
    """`reasoning keep | last | strip`."""

    kind: Literal["reasoning"] = "reasoning"
    shown: Literal["keep", "last", "strip"]


class ContextSetting(Statement):
    """`context { … }` of a sink."""

    kind: Literal["context_setting"] = "context_setting"
    context: Context


class Format(Statement):
    """`format trl`."""

    kind: Literal["format"] = "format"
    name: Name


class Prompt(Statement):
    """`prompt until first assistant`."""

    kind: Literal["prompt"] = "prompt"
    pick: Literal["first", "last"]
    role: Name


class EnvironmentUse(Statement):
    """`environment TOOLS`."""

    kind: Literal["environment"] = "environment"
    tools: Name


class Reward(Statement):
    """`reward 0.8 * state_match + 0.2 * call_format`."""

    kind: Literal["reward"] = "reward"
    value: Expr


class Group(Statement):
    """`group 8`."""

    kind: Literal["group"] = "group"
    size: Number


class Key(Statement):
    """`key E`."""

    kind: Literal["key"] = "key"
    value: Expr


class Value(Statement):
    """`value E`."""

    kind: Literal["value"] = "value"
    value: Expr


class Retrieve(Statement):
    """`retrieve bm25 top 3`."""

    kind: Literal["retrieve"] = "retrieve"
    method: Name
    top: Number


class Pair(Statement):
    """`pair within k from first difference chosen where E rejected where E [margin E >= x] [max N per k] …`."""

    kind: Literal["pair"] = "pair"
    within: tuple[Expr, ...] = ()
    from_difference: bool = False
    chosen: Expr | None = None
    rejected: Expr | None = None
    margin: Expr | None = None
    margin_at_least: Number | None = None
    max_pairs: Number | None = None
    max_per: tuple[Expr, ...] = ()
    length_ratio: Number | None = None


Step = Annotated[
    From
    | Join
    | Split
    | Render
    | View
    | Filter
    | TurnsFilter
    | TurnsSet
    | TurnsCut
    | ToolsFilter
    | Redact
    | DedupExact
    | DedupNear
    | Limit
    | Sample
    | Mix
    | Derive
    | Tag
    | Decompose
    | Augment
    | Judge
    | Rewrite
    | Decontaminate
    | Sort
    | Expect,
    Field(discriminator="kind"),
]

Setting = Annotated[
    Loss
    | Fit
    | ReasoningShown
    | ContextSetting
    | Format
    | Prompt
    | EnvironmentUse
    | Reward
    | Group
    | Key
    | Value
    | Retrieve
    | Pair,
    Field(discriminator="kind"),
]


class Stage(Node):
    """`stage n from m { … }`."""

    kind: Literal["stage"] = "stage"
    name: Name
    base: Name
    steps: tuple[Step, ...] = ()


class Sink(Node):
    """`emit sft [from n] { … }`. `body` keeps steps and settings in written order."""

    kind: Literal["sink"] = "sink"
    name: Name
    base: Name | None = None
    body: tuple[Step | Setting, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(item for item in self.body if not isinstance(item, SETTINGS))

    @property
    def settings(self) -> tuple[Setting, ...]:
        return tuple(item for item in self.body if isinstance(item, SETTINGS))


SETTINGS = (
    Loss,
    Fit,
    ReasoningShown,
    ContextSetting,
    Format,
    Prompt,
    EnvironmentUse,
    Reward,
    Group,
    Key,
    Value,
    Retrieve,
    Pair,
)
