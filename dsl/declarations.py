"""Declarations: what stands at the top level of a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curatec.dsl.expr import Call, Expr, Literal_, Number, Text
from curatec.dsl.nodes import Name, Node
from curatec.dsl.steps import Choices, Range, Share, Sink, Stage, Step


class Version(Node):
    """`curate 1`."""

    kind: Literal["version"] = "version"
    number: Number


class Import(Node):
    """`import "lib.curate"`."""

    kind: Literal["import"] = "import"
    path: Text


class Param(Node):
    """`param n = v in lo .. hi`, `param n = v in {a, b}`."""

    kind: Literal["param"] = "param"
    name: Name
    value: Literal_
    range: Range | None = None
    choices: Choices | None = None


class FromPath(Node):
    """`from path r"…(group)…"`: read from where a file lies."""

    kind: Literal["from_path"] = "from_path"
    pattern: Text


class Source(Node):
    """`source n { path … }`: a raw corpus."""

    kind: Literal["source"] = "source"
    name: Name
    path: tuple[Text, ...] = ()
    format: Name | None = None
    tools_from: Text | None = None
    system: Text | None = None
    system_from: Text | None = None
    domain: Text | FromPath | None = None
    model: Text | FromPath | None = None
    error_when: Expr | None = None
    success_when: Expr | None = None
    license: Text | None = None


class Column(Node):
    """`resolved: bool`."""

    kind: Literal["column"] = "column"
    name: Name
    type: Name


class Table(Node):
    """`table n { path … key k columns { … } }`: side data."""

    kind: Literal["table"] = "table"
    name: Name
    path: tuple[Text, ...] = ()
    key: Name | None = None
    columns: tuple[Column, ...] = ()


class Use(Node):
    """`use "filters.py": is_flaky(trajectory) -> bool`."""

    kind: Literal["use"] = "use"
    path: Text
    function: Name
    parameters: tuple[Name, ...]
    returns: Name


class Duration(Node):
    """`5s`, `100ms`."""

    kind: Literal["duration"] = "duration"
    amount: Number
    unit: Literal["ms", "s", "m", "h"]


class Size(Node):
    """`512 mb`."""

    kind: Literal["size"] = "size"
    amount: Number
    unit: Literal["mb", "gb"]


class RoleOverride(Node):
    """`role user_id = user`."""

    kind: Literal["role_override"] = "role_override"
    parameter: Name
    role: Name


class ToolOverride(Node):
    """`tool find_user { class matcher effect read role user_id = user }`."""

    kind: Literal["tool_override"] = "tool_override"
    name: Name
    op_class: Name | None = None
    effect: Name | None = None
    roles: tuple[RoleOverride, ...] = ()


class Tools(Node):
    """`tools n { python "module:function" timeout 5s }`: a tool ecosystem."""

    kind: Literal["tools"] = "tools"
    name: Name
    python: Text | None = None
    mcp: tuple[Text, ...] = ()
    openapi: Text | None = None
    adapter: Name | None = None
    config: Text | None = None
    timeout: Duration | None = None
    memory: Size | None = None
    sandbox: Name | None = None
    overrides: tuple[ToolOverride, ...] = ()


class Budget(Node):
    """`{ usd 5 tokens 2_000_000 minutes 60 }`."""

    kind: Literal["budget"] = "budget"
    usd: Number | None = None
    tokens: Number | None = None
    minutes: Number | None = None
    calls: Number | None = None


class Env(Node):
    """`env("OPENAI_API_KEY")`: the name of an environment variable, never its value."""

    kind: Literal["env"] = "env"
    variable: Text


class Model(Node):
    """`model n { endpoint env("…") key env("…") name "…" budget { … } }`."""

    kind: Literal["model"] = "model"
    name: Name
    endpoint: Text | Env | None = None
    key: Env | None = None
    id: Text | None = None
    temperature: Number | None = None
    concurrency: Number | None = None
    timeout: Duration | None = None
    budget: Budget | None = None


class SealedSet(Node):
    """`test set n { path … id … text … }`: sealed tasks to keep out of training."""

    kind: Literal["test_set"] = "test_set"
    name: Name
    path: tuple[Text, ...] = ()
    id: Name | None = None
    text: Name | None = None


class WorkflowNode(Node):
    """`detail: retriever from find after who`."""

    kind: Literal["workflow_node"] = "workflow_node"
    name: Name
    op_class: Name
    inputs: tuple[Name, ...] = ()
    after: tuple[Name, ...] = ()


class Workflow(Node):
    """`workflow n: medium { … answer total }`: a DAG template over classes of tools."""

    kind: Literal["workflow"] = "workflow"
    name: Name
    difficulty: Name | None = None
    nodes: tuple[WorkflowNode, ...] = ()
    answer: Name | None = None


class Synthesis(Node):
    """`synthesis n { tools t workflows w, * count 200 … }`. `any_workflow` is the `*`."""

    kind: Literal["synthesis"] = "synthesis"
    name: Name
    tools: Name | None = None
    workflows: tuple[Name, ...] = ()
    any_workflow: bool = False
    count: Number | None = None
    seed: Number | None = None
    difficulty: tuple[Share, ...] = ()
    tasks: tuple[Name, ...] = ()
    annotate: Name | None = None
    split_by: Name | None = None
    split: tuple[Share, ...] = ()


class Failure(Node):
    """`failure n { when E }`: a named failure family."""

    kind: Literal["failure"] = "failure"
    name: Name
    when: Expr


class Hyper(Node):
    """`lr 3e-3`."""

    kind: Literal["hyper"] = "hyper"
    name: Name
    value: Number | Text


class Recipe(Node):
    """`recipe n { base "…" adapter full sft { … } grpo { … } }`: the fixed training recipe."""

    kind: Literal["recipe"] = "recipe"
    name: Name
    base: Text | None = None
    adapter: Call | None = None
    sft: tuple[Hyper, ...] = ()
    grpo: tuple[Hyper, ...] = ()


class Benchmark(Node):
    """`benchmark n { tasks from traces tools shop agent { … } }`."""

    kind: Literal["benchmark"] = "benchmark"
    name: Name
    tasks: Name | Text | None = None
    tools: Name | None = None
    scorer: tuple[Name, ...] = ()
    max_turns: Number | None = None
    memory_top: Number | None = None
    agent_model: Name | None = None


class Evolve(Node):
    """`evolve n { strategy s recipe r benchmark b objective E … }`."""

    kind: Literal["evolve"] = "evolve"
    name: Name
    strategy: Name | None = None
    workflows: tuple[Name, ...] = ()
    recipe: Name | None = None
    benchmark: Name | None = None
    objective: Expr | None = None
    epochs: Number | None = None
    seeds: Number | None = None
    trials: Number | None = None
    propose: Name | None = None
    scaffold: Name | None = None
    controls: tuple[Name, ...] = ()
    budget: Budget | None = None


class Strategy(Node):
    """`strategy n { … }`. `body` keeps shared steps, stages and sinks in written order."""

    kind: Literal["strategy"] = "strategy"
    name: Name
    body: tuple[Step | Stage | Sink, ...] = ()


Declaration = Annotated[
    Version
    | Import
    | Param
    | Source
    | Table
    | Use
    | Tools
    | Model
    | SealedSet
    | Workflow
    | Synthesis
    | Failure
    | Strategy
    | Recipe
    | Benchmark
    | Evolve,
    Field(discriminator="kind"),
]


class File(Node):
    """One `.curate` file: its declarations in written order."""

    kind: Literal["file"] = "file"
    declarations: tuple[Declaration, ...] = ()
