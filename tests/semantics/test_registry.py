"""The registry: every example is true, every window aggregate does what its words say, to the last bit."""

from __future__ import annotations

import random
import statistics
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from curatec.compiler.core import Column, Core, Window
from curatec.compiler.frames import Frames
from curatec.compiler.functions import FUNCTIONS, WINDOWS
from curatec.compiler.types import Level, Type
from curatec.dsl.diagnostics import CuratecError
from tests.semantics.tools import Bench, core, plain, record

X = Column(Level.TRAJECTORY, "reward", Type.FLOAT)
N = Column(Level.TRAJECTORY, "trial", Type.INT)
P = Column(Level.TRAJECTORY, "success", Type.BOOL)
WORD = Column(Level.TRAJECTORY, "agent", Type.TEXT)
TASK = Column(Level.TRAJECTORY, "task", Type.TEXT)
DTYPES = {"reward": pl.Float64, "trial": pl.Int64, "success": pl.Boolean}


def frames(rows: int | None = None, **columns: list[Any]) -> Frames:
    height = rows if rows is not None else len(next(iter(columns.values())))
    made = [pl.Series(name, values, dtype=DTYPES.get(name, pl.String)) for name, values in columns.items()]
    return Frames(pl.DataFrame(made).with_columns(row=pl.int_range(height, dtype=pl.UInt32, eager=True)))


def window(name: str, argument: Core | None, keys: tuple[Core, ...] = (TASK,), **columns: list[Any]) -> list[Any]:
    """Values of an aggregate for each row; what its type is follows from the argument."""
    type_ = WINDOWS[name].returns or (argument.type if argument is not None else Type.INT)
    return plain(frames(**columns).series(Window(name, argument, keys, type_)))


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: str(entry.name))
def test_every_example_gives_what_it_says(entry: Any) -> None:
    assert entry.doc.endswith(".")
    made = core(entry.example)
    [value] = plain(frames(reward=[0.0]).series(made))
    assert value == entry.gives
    assert type(value) is type(entry.gives)


@pytest.mark.parametrize("entry", WINDOWS.values(), ids=lambda entry: str(entry.name))
def test_every_window_has_doc_and_an_example_that_checks(entry: Any) -> None:
    assert entry.doc.endswith(".")
    made = core(entry.example)
    assert isinstance(made, Window)
    assert made.function == entry.name


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: str(entry.name))
def test_null_rules_hold(entry: Any) -> None:
    """A null in any place of a function that says «null in, null out» gives null."""
    if entry.nulls != "null in, null out" or entry.operator:
        return
    wanted = [p for p in entry.parameters if not p.literal]
    fixed = {Type.TEXT: '"a"', Type.TEXTS: '["a"]', Type.INT: "1", Type.FLOAT: "1.5"}
    options = {"pattern": 'pattern: r"a"', "with": 'with: "b"', "between": 'between: "+"'}
    named = "".join(f", {options[p.name]}" for p in entry.parameters if p.literal and not p.optional)
    for place in range(len(wanted)):
        values = ["null" if i == place else fixed[p.types[0]] for i, p in enumerate(wanted)]
        made = core(f"{entry.name}({', '.join(values)}{named})")
        assert plain(frames(reward=[0.0, 1.0]).series(made)) == [None, None], (entry.name, place)


GROUPS = ["a", "a", "a", "b", None, "c", "c"]
REWARDS = [1.0, None, 3.5, 2.0, 9.0, None, None]
EXPECTED = {
    "count": [3, 3, 3, 1, None, 2, 2],
    "sum": [4.5, 4.5, 4.5, 2.0, None, 0.0, 0.0],
    "mean": [2.25, 2.25, 2.25, 2.0, None, None, None],
    "std": [1.767767, 1.767767, 1.767767, None, None, None, None],
    "min": [1.0, 1.0, 1.0, 2.0, None, None, None],
    "max": [3.5, 3.5, 3.5, 2.0, None, None, None],
    "median": [2.25, 2.25, 2.25, 2.0, None, None, None],
    "rank": [1, None, 2, 1, None, None, None],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_windows_of_known_values(name: str) -> None:
    found = window(name, None if name == "count" else X, reward=REWARDS, task=GROUPS)
    assert [round(v, 6) if isinstance(v, float) else v for v in found] == EXPECTED[name]


def test_every_window_is_tried_here() -> None:
    assert {*EXPECTED, "share"} == set(WINDOWS)


def test_share_is_over_all_rows_of_the_group() -> None:
    verdicts = [True, None, False, True, True, None, None]
    assert window("share", P, success=verdicts, task=GROUPS) == [1 / 3, 1 / 3, 1 / 3, 1.0, None, 0.0, 0.0]


def test_rank_is_min_rank_of_texts_by_code_point() -> None:
    words = ["é", "Z", "a", "Z", None]
    assert window("rank", WORD, (TASK,), agent=words, task=["t"] * 5) == [4, 1, 3, 1, None]
    down = Window("rank", WORD, (TASK,), Type.INT, descending=True)
    assert plain(frames(agent=words, task=["t"] * 5).series(down)) == [1, 3, 2, 3, None]


def test_several_keys_one_of_them_null() -> None:
    model = Column(Level.TRAJECTORY, "model", Type.TEXT)
    found = window("count", None, (TASK, model), task=["a", "a", "a", None], model=["m", "m", None, "m"])
    assert found == [2, 2, None, None]


def test_no_rows_at_all() -> None:
    for name in WINDOWS:
        argument = {"count": None, "share": P}.get(name, X)
        assert window(name, argument, reward=[], success=[], task=[]) == []


def test_ints_stay_ints() -> None:
    large = 2**62
    assert window("sum", N, trial=[large, -1, None], task=["a"] * 3) == [large - 1] * 3
    assert window("max", N, trial=[3, None, 5], task=["a"] * 3) == [5] * 3


# ---- to the last bit (semantics 15) ----


def values(seed: int, count: int) -> list[float]:
    drawn = random.Random(seed)

    def value() -> float:
        return drawn.choice([drawn.uniform(-5, 5), drawn.randrange(-500, 500) / 10, drawn.uniform(0, 1e-5)])

    return [value() for _ in range(count)]


def exact(micros: int, divisor: int) -> float:
    """The float nearest to a quotient of whole numbers."""
    return float(Fraction(micros, divisor))


@pytest.mark.parametrize("seed", range(20))
def test_sum_and_mean_are_whole_number_arithmetic_with_one_division(seed: int) -> None:
    drawn = values(seed, 1 + seed * 37)
    micros = sum(round(x * 1e6) for x in drawn)  # Python's `round` takes halves to the even number
    assert abs(micros) < 2**53
    shuffled = random.Random(-seed).sample(drawn, len(drawn))
    for rows in (drawn, shuffled):
        assert window("sum", X, reward=rows, task=["a"] * len(rows))[0] == exact(micros, 10**6)
        assert window("mean", X, reward=rows, task=["a"] * len(rows))[0] == exact(micros, 10**6 * len(drawn))


def test_halves_of_a_millionth_go_to_the_even_one() -> None:
    assert window("sum", X, reward=[0.0000005, 0.0000015, 0.0000025], task=["a"] * 3)[0] == 0.000004


@pytest.mark.parametrize("seed", range(5))
def test_std_is_the_sample_deviation(seed: int) -> None:
    drawn = values(seed, 50)
    found = window("std", X, reward=drawn, task=["a"] * 50)[0]
    assert found == pytest.approx(statistics.stdev(drawn), rel=1e-6)


@pytest.mark.parametrize("divisor", ["3", "10", "0.7", "(if reward is null then 1 else 3)", "abs(-7)", "(2.5 + 0.5)"])
def test_division_is_correct_in_the_last_bit(divisor: str) -> None:
    numerators = [n / 10 for n in range(100_000)]
    by = {"3": 3, "10": 10, "0.7": 0.7, "abs(-7)": 7}.get(divisor, 3)
    found = plain(frames(reward=numerators).series(core(f"reward / {divisor}")))
    assert found == [n / by for n in numerators]


# ---- 64 bits (semantics 15) ----

TOO_LARGE = (
    "9_223_372_036_854_775_807 + trial",
    "(-9_223_372_036_854_775_807) - 1 - trial",
    "trial * 9_223_372_036_854_775_807 * 2",
    "-((-9_223_372_036_854_775_807) - trial)",
    "abs((-9_223_372_036_854_775_807) - trial)",
    "sum(trial * 9_000_000_000_000_000_000) over (source)",
    "sum(trial * 9_000_000_000_000.0) over (source)",
    "mean(trial * 9_000_000_000_000.0) over (source)",
    "mean(cost) over (source)",
    "count(turns where index * 9_000_000_000_000_000_000 > 3)",
)


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_number_that_does_not_fit_is_a_diagnostic_at_its_step(bench: Bench, text: str) -> None:
    user = {"role": "user", "content": "hi"}
    records = [record(user, user, user, trial=1, cost=1e300), record(trial=1, cost=1.0)]
    bench.write("a.jsonl", records)
    with pytest.raises(CuratecError) as raised:
        bench.execute(bench.spec(f"big: derive x_ = {text}"))
    [problem] = raised.value.diagnostics
    assert problem.code == "C0608"
    assert "step `big`" in problem.note
    assert problem.span is not None


def test_what_fails_later_is_not_told_earlier(bench: Bench) -> None:
    """The second step never sees the row whose number would not fit, though both are measured in one pass."""
    records = [record(id="small"), record(*[{"role": "user", "content": "x"}] * 5, id="large")]
    body = "a: keep where turn_count < 3 b: keep where turn_count * 3_000_000_000_000_000_000 > 0"
    assert bench.kept(body, records) == ["small"]
