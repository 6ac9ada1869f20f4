"""The checker: what the gallery does not show, parameters, the choice of a strategy, and what good specs mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatec.compiler import plan
from curatec.compiler.check.program import Checked, check
from curatec.compiler.core import Apply, Column, Const
from curatec.compiler.load import load_text
from curatec.compiler.types import Level, Type
from curatec.dsl.diagnostics import CuratecError, Diagnostic

FOLDER = Path(__file__).parent
HEAD = 'curate 1\nsource runs { path "runs/*.jsonl" }\n'
SFT = "emit sft { won: keep where success loss on assistant }"


def checked(text: str, **given: str) -> Checked:
    return check(load_text(text, "spec.curate", FOLDER), given)


def steps(text: str, before: str = "", sink: str = SFT) -> Checked:
    """Check shared steps of a strategy."""
    return checked(f"{HEAD}{before}\nstrategy s {{\n  from runs\n  {text}\n  {sink}\n}}")


def operation(text: str, before: str = "") -> plan.Operation:
    found = steps(text, before)
    assert found.diagnostics == (), found.diagnostics
    return found.plan("s").shared[-1].operation


def only(found: Checked) -> Diagnostic:
    (problem,) = found.diagnostics
    return problem


def marked(problem: Diagnostic) -> str:
    assert problem.source is not None
    assert problem.span is not None
    return problem.source.excerpt(problem.span)


# ---- what is right ----


@pytest.mark.parametrize(
    "condition",
    [
        "outcome in {crash, failure}",
        "outcome not in {success, truncated}",
        "any(turns where role in {user, assistant})",
        'any(turns where role in {`user`, "tool"})',
        'outcome == "failure"',
        "source in {runs}",
        "domain in {airline, retail}",
        'meta.user.name == "Ann" and meta["x-y"][0] is null',
        "meta.n > 3 and meta.flag == true and meta.kind in {1, 2}",
        "meta is not null and meta.list is empty",
        'any(calls where args.user_id != trajectory.meta.user_id and turn.role == "assistant")',
        "any(turns where any(calls where is_error) and calls is not empty)",
        'last(turns where is_error).content ~ r"^Error"',
        'last(calls where name == "book").args.price > 10',
        "any(turns where prev.content == content and caller.calls_text == reply.calls_text)",
        'started_at > "2026-01-31" and started_at < "2026-02-01T09:00:00+02:00"',
        'has(tool_names, "book") and length(tool_names) > 1',
        'count(turns where role == "tool") between 1 and 5',
        "all(calls where not is_error)",
        "mean(reward) over (task) > 0.5 and rank(reward desc) over (task, model) <= 3",
        "share(success) over (task) between 10% and 90%",
        "success",
        "(if success then 1 else 0.5) > 0.7",
        "coalesce(final_answer, task_text) is not empty",
        'task_id as int > 5 and (turn_count as text) == "3"',
        'contains(part: "x", text: text)',
        'truncate(text, keep: ends, n: 4, marker: "…") == "abcd"',
        "-reward < 0 and reward ** 2 > 0.25",
        "trajectory.reward > 0.5",
    ],
)
def test_conditions_that_hold_water(condition: str) -> None:
    assert isinstance(operation(f"a: keep where {condition}"), plan.Filter)


def test_named_arguments_take_their_places() -> None:
    straight = operation('a: keep where contains(text, "x")')
    turned = operation('a: keep where contains(part: "x", text: text)')
    assert plan.digest(straight) == plan.digest(turned)


def test_bare_words_of_a_set_are_texts() -> None:
    where = operation("a: keep where outcome in {crash, failure}")
    assert isinstance(where, plan.Filter)
    assert where.where == Apply(
        "one_of",
        (
            Column(Level.TRAJECTORY, "outcome", Type.TEXT),
            Const("crash", Type.TEXT),
            Const("failure", Type.TEXT),
        ),
        Type.BOOL,
    )


@pytest.mark.parametrize(
    "expectation",
    [
        "rows(sft) >= 100",
        "rows() > 0 and rows(shared) > 0",
        "rows(sft) / rows(shared) > 10%",
        "share(reward > 0.5, sft) over (source, domain) >= least_share",
        "mean(turn_count, sft) between 3 and 30 or rows(sft) == 0",
        "-mean(reward) < -0.1",
        "count(sft) > 3",
        "max(reward, sft) - min(reward, sft) >= 0.5",
    ],
)
def test_expectations(expectation: str) -> None:
    found = steps(f"expect {expectation}", "param least_share = 0.8 in 0.0 .. 1.0")
    assert found.diagnostics == ()
    assert len(found.plan("s").expectations) == 1


def test_expectations_stand_anywhere() -> None:
    found = steps(
        "expect rows() > 1\n stage a from shared { expect rows() > 2 b: keep where success }",
        sink="emit sft from a { expect rows(sft) > 3 loss on assistant }\n expect rows() > 4",
    )
    assert found.diagnostics == ()
    assert len(found.plan("s").expectations) == 4


def test_weights_of_rewards_may_be_parameters() -> None:
    sink = "emit rl { reward w * state_match - call_format * 0.5 + reward }"
    found = steps("a: keep where success", "param w = 2 in 1 .. 3", sink)
    target = found.plan("s").branch("rl").target
    assert isinstance(target, plan.Rl)
    assert target.reward == (("state_match", 2), ("call_format", -0.5), ("reward", 1))


def test_what_a_family_may_use() -> None:
    before = "failure slow { when usual > 3 and trajectory.reward < 1 and turn_count > usual }"
    assert steps("derive usual = mean(turn_count) over (task)\n families: tag failure", before).diagnostics == ()


def test_nested_sources_of_outcome_need_no_advice() -> None:
    for text in ("derive ok = reward > 0.5\n a: keep where ok", "a: keep where meta.solved == true"):
        assert steps(text, sink="emit sft { loss on assistant }").diagnostics == ()
    assert (
        steps("", sink="emit sft { loss on assistant weight if success then 1 else 0 }").diagnostics[0].code != "C0403"
    )
    staged = "stage good from shared { a: keep where success }"
    assert steps(staged, sink="emit sft from good { loss on assistant }").diagnostics == ()


def test_a_label_is_not_asked_of_what_has_a_name() -> None:
    before = "failure f { when reward < 1 }"
    text = "split by task { train 90% validation 10% } seed 7\n derive x = reward\n tag failure"
    assert steps(text.replace("derive", "\n derive"), before).diagnostics == ()


# ---- messages that the gallery does not show ----


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ("a: keep where any(turns where tools)", "C0203", "tools", "unknown field `tools`"),
        ('a: keep where any(turns where name == "x")', "C0203", "name", "unknown field `name`"),
        ("a: keep where any(calls where any(calls where is_error))", "C0211", "calls", "a call holds no calls"),
        ("a: tools keep where any(calls where is_error)", "C0211", "calls", "a tool holds no calls"),
        ("a: tools keep where usd", "C0203", "usd", "unknown field `usd`"),
        ("a: keep where any(turns where trajectory.turns is null)", "C0203", "turns", "unknown field `turns`"),
        (
            "a: keep where any(calls where turn.calls is empty)",
            "C0309",
            "turn.calls",
            "the calls of a turn are no value",
        ),
        ("a: keep where any(turns where prev.naem == 1)", "C0203", "naem", "unknown field `naem`"),
        ("a: keep where signal.forgeting", "C0203", "forgeting", "unknown signal `forgeting`"),
        ('a: keep where call.name == "x"', "C0203", "call", "unknown field `call`"),
        ("a: keep where mata.x == 1", "C0203", "mata", "unknown field `mata`"),
        ("a: keep where (if success then null else null) > 1", "C0301", None, None),
        ('a: keep where ["a"] == tool_names', "C0301", None, "a list is not compared"),
        ('a: keep where has(["a", b], task)', "C0203", "b", "unknown field `b`"),
        ("a: keep where meta.x == started_at", "C0301", None, "a JSON value is compared with a time"),
        ('a: keep where lower(task desc) == "x"', "C0304", "task desc", "`lower` has no direction"),
        ("a: keep where mean(x: reward) over (task) > 1", "C0304", None, "`mean` takes one value"),
        ('a: keep where task ~ "[" or true', "C0306", '"["', "[ is never closed"),
        ('a: keep where text ~ r"(?P<n>a)" and reward > "1"', "C0306", None, None),
        ('a: keep where slice(task, 1, 2, 3) == "x"', "C0304", "3", "`slice` takes no more than 3"),
        ('a: keep where extract(task, task) == "x"', "C0304", "task", "`pattern` must be a text written out"),
        ('a: sort by reward, "x"', "C0304", '"x"', "a constant orders nothing"),
        ("a: keep where first(turns).calls_txt is null", "C0203", "calls_txt", "unknown field `calls_txt`"),
        ("a: keep where last(tuns where is_error).content is null", "C0203", "tuns", "`tuns` is no collection"),
        ("a: limit 3 per tool_nmes order by reward", "C0203", "tool_nmes", "unknown field `tool_nmes`"),
        ("a: limit 3 per each task order by reward", "C0304", "task", "`per each` goes over a list"),
        ("expect not rows(sft) > 3", "C0302", "not rows(sft) > 3", "an expectation compares something"),
        ("expect rank(reward, sft) > 3", "C0204", "rank", "`rank` measures nothing"),
        ("expect mean(x: reward, sft) > 3", "C0304", None, "`mean` takes plain arguments"),
        ("expect rows(sft) > success", "C0304", "success", "an expectation speaks of rows as a whole"),
        ("a: keep where 1 in runs.x", "C0201", "runs", "no table is called `runs`"),
        ("derive a = reward\n derive runs2 = a\n derive a = 1", "C0208", "a", "`a` is taken"),
        ("a: turns set reasoning = 3", "C0302", "3", "a text is wanted here, and this is a whole number"),
        ("a: turns set content = tool_names", "C0205", "tool_names", None),
    ],
)
def test_messages(text: str, code: str, place: str | None, message: str | None) -> None:
    found = [d for d in steps(text).diagnostics if d.code == code]
    assert found, steps(text).diagnostics
    assert place is None or marked(found[0]) == place
    assert message is None or found[0].message == message
    assert code < "C0200" or found[0].help


@pytest.mark.parametrize(
    ("sink", "code", "message"),
    [
        ("emit rl { prompt until last assistant group 8 format openai }", None, None),
        ("emit rl { reward 0.5 }", "C0304", "a reward is a sum of verifiers"),
        ("emit rl { environment desk }", "C0201", "no tools is called `desk`"),
        ("emit memory { key turn_count value final_answer }", "C0302", None),
        ("emit preference { pair within task }", "C0410", "`pair` needs `chosen where …`"),
        ("emit preference { pair chosen where success rejected where not success margin task >= 1 }", "C0301", None),
        ("emit preference { pair chosen where success rejected where not success max 0 per task }", "C0304", None),
        (
            "emit preference { pair chosen where success rejected where not success }"
            " expect share(success, preference) > 1",
            "C0304",
            "a preference row has two runs",
        ),
        ("emit sft { a: keep where success loss on assistant weight content }", "C0301", None),
        ("emit sft { a: keep where success fit 0 tokens else drop }", "C0304", None),
        ("emit sft { a: keep where success loss on assistant weight null }", "C0404", None),
    ],
)
def test_sinks(sink: str, code: str | None, message: str | None) -> None:
    found = steps("", sink=sink).diagnostics
    assert code in [d.code for d in found] or (code is None and not found), found
    assert message is None or message in [d.message for d in found]


@pytest.mark.parametrize("kind", ['render "x"', "view agent", "join t on task", "split by task { train 100% }"])
def test_shared_steps_do_not_stand_in_sinks(kind: str) -> None:
    table = 'table t { path "t.json" key id columns { a: int } }'
    found = steps("", table, f"emit sft {{ {kind} w: keep where success }}")
    assert [d.code for d in found.diagnostics if d.severity == "error"] == ["C0406"]


def test_one_mistake_is_one_message() -> None:
    """What a wrong part feeds is not reported as well."""
    text = "derive a = rewrad\n derive b = a + 1\n c: keep where a > b and mean(a) over (task) > 1 and lower(a) > task"
    assert only(steps(text)).code == "C0203"
    stage = "stage good from shared { derive a = reward }"
    assert only(steps(stage, sink="emit sft from god { b: keep where a > 1 }")).code == "C0214"
    assert only(steps("", sink="emit sft { a: keep where success loss on assistant weight task }")).code == "C0205"


def test_unused_sources_are_checked() -> None:
    problem = only(checked(HEAD + 'source other { path "x" error when contnt == "e" }'))
    assert (problem.code, marked(problem)) == ("C0203", "contnt")


@pytest.mark.parametrize("fact", ["task", "id", "pass_rate", "attempts", "spread", "success", "outcome", "failure"])
def test_sources_ask_only_what_is_known_while_they_are_read(fact: str) -> None:
    for setting in (f"error when trajectory.{fact} is null", f"success when {fact} is null"):
        problem = only(checked(f'curate 1\nsource runs {{ path "x" {setting} }}'))
        assert (problem.code, marked(problem)) == ("C0203", fact)
        assert problem.note == "it is not known yet when a source is read"


def test_sources_may_ask_for_the_run() -> None:
    settings = 'error when content ~ "x" and trajectory.meta.n > 1 success when reward > 0.5 and task_id == "a"'
    assert checked(f'curate 1\nsource runs {{ path "x" {settings} }}').diagnostics == ()


def test_version_and_nothing_else() -> None:
    assert checked("curate 1").diagnostics == ()
    assert only(checked("curate 1.5")).message == "language version 1.5 is not known"


# ---- parameters ----

PARAMS = """curate 1
param low = 0.5 in 0.0 .. 1.0
param n = 3 in 1 .. 9
param x = 1 in 0 .. 1.5
param share = 10% in 0% .. 50%
param size = small in {small, medium}
param k = 3 in {1, 3, 5}
param strict = true in {true, false}
param shift = -1 in -5 .. 5
"""


@pytest.mark.parametrize(
    ("name", "text", "value", "type_"),
    [
        ("low", "0.8", 0.8, Type.FLOAT),
        ("low", "1", 1.0, Type.FLOAT),
        ("low", "80%", 0.8, Type.FLOAT),
        ("low", "1e-1", 0.1, Type.FLOAT),
        ("n", "9", 9, Type.INT),
        ("n", "4.0", 4, Type.INT),
        ("x", "0.5", 0.5, Type.FLOAT),
        ("share", "0.3", 0.3, Type.FLOAT),
        ("share", "30%", 0.3, Type.FLOAT),
        ("size", "medium", "medium", Type.TEXT),
        ("k", "5", 5, Type.INT),
        ("strict", "false", False, Type.BOOL),
        ("shift", "-5", -5, Type.INT),
    ],
)
def test_overrides(name: str, text: str, value: object, type_: Type) -> None:
    found = checked(PARAMS, **{name: text})
    assert found.params[name] == Const(value, type_)  # type: ignore[arg-type]
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("low", "1.1"),
        ("low", "-0.1"),
        ("low", "much"),
        ("low", "nan"),
        ("low", "inf"),
        ("low", "101%"),
        ("low", ""),
        ("n", "10"),
        ("n", "2.5"),
        ("n", "true"),
        ("x", "1.6"),
        ("share", "51%"),
        ("size", "large"),
        ("size", ""),
        ("k", "4"),
        ("k", "3.5"),
        ("strict", "1"),
        ("strict", "True"),
        ("nothing", "1"),
    ],
)
def test_wrong_overrides(name: str, text: str) -> None:
    with pytest.raises(CuratecError) as raised:
        checked(PARAMS, **{name: text})
    (problem,) = raised.value.diagnostics
    assert problem.code == "C0418"
    assert problem.help


def test_declared_values_keep_their_type_under_overrides() -> None:
    found = checked(PARAMS)
    assert {name: const.type for name, const in found.params.items()} == {
        "low": Type.FLOAT,
        "n": Type.INT,
        "x": Type.FLOAT,
        "share": Type.FLOAT,
        "size": Type.TEXT,
        "k": Type.INT,
        "strict": Type.BOOL,
        "shift": Type.INT,
    }


def test_values_of_parameters_are_in_the_plan() -> None:
    text = PARAMS + HEAD.removeprefix("curate 1\n") + "strategy s { from runs a: keep where reward >= low\n" + SFT + "}"
    plans = [checked(text, low=value).plan(None) for value in ("0.5", "0.8", "80%")]
    digests = [plan.digest(made) for made in plans]
    assert digests[0] != digests[1] == digests[2]
    assert dict(plans[1].params)["low"] == "0.8"


# ---- which strategy ----


def test_strategies() -> None:
    one, two = (f"strategy {name} {{ from runs {SFT} }}\n" for name in ("one", "two"))
    assert checked(HEAD + one).plan(None).strategy == "one"
    assert checked(HEAD + one + two).plan("two").strategy == "two"
    for text, name in ((HEAD + one + two, None), (HEAD, None), (HEAD + one, "on"), (HEAD, "one")):
        with pytest.raises(CuratecError) as raised:
            checked(text).plan(name)
        (problem,) = raised.value.diagnostics
        assert problem.code == "C0417"
        assert problem.help


def test_a_strategy_with_errors_has_no_plan() -> None:
    one, two = f"strategy one {{ from runs a: keep where rewrad > 1 {SFT} }}", f"strategy two {{ from runs {SFT} }}"
    found = checked(f"{HEAD}{one}\n{two}")
    assert not found.ok
    assert list(found.plans) == ["two"]
    with pytest.raises(CuratecError, match="rewrad"):
        found.plan("one")


def test_types_of_derived_columns() -> None:
    values = {"a": "1 + reward", "b": "task", "c": "meta.x", "d": "count() over (task)", "e": "tool_names"}
    text = "\n".join(f"derive {name} = {value}" for name, value in values.items())
    assert dict(steps(text).plan("s").derived) == {
        "a": Type.FLOAT,
        "b": Type.TEXT,
        "c": Type.TEXT,
        "d": Type.INT,
        "e": Type.TEXTS,
    }


def test_nested_comparisons_are_checked_in_linear_time() -> None:
    """Each part is checked once: 20 levels, doubled at each, would take minutes."""
    ranged, named, picked = "reward", "nothing", "reward"
    for _ in range(20):
        ranged = f"(if {ranged} between 0 and 1 then 1 else 0)"
        named = f"(nothing == {named})"
        picked = f"coalesce(if {picked} in {{1, 2}} then 1 else 0, 2)"
    for value in (f"{ranged} > 0", named, f"{picked} > 0"):
        found = steps(f"a: keep where {value}").diagnostics
        assert {d.code for d in found} <= {"C0203", "C0304"}, value
