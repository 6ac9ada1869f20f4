"""SFT rows: which text is trained, which rows stay out."""

from __future__ import annotations

import polars as pl
import pytest
from ruamel.yaml import YAML

from curatec.compiler import plan
from curatec.compiler.frames import Frames
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.conversation.training import turn_weights

from .conftest import TOOLS, Made, Make, calls, result, run, says, system, trained_texts, user

pytestmark = pytest.mark.usefixtures("parts")

WHOLE = run(
    "1",
    system(),
    user("Where is 7?"),
    calls(("c1", "find", '{"id": 7}'), text="Looking 🔎", reasoning_content="An id."),
    result("c1", "Paris"),
    says("<think>Paris — so it is.</think>\n\nIn Paris."),
    user("Thanks"),
    tools=TOOLS,
)


def yaml(made: Made, sink: str = "sft") -> dict[str, object]:
    found: dict[str, object] = YAML(typ="safe").load((made.out / sink / "trainer.yaml").read_text())
    return found


def test_all_assistant_text_is_trained_to_the_code_point(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant }")
    assert trained_texts(got.texts("sft")[0]) == [
        (2, "reasoning", "An id."),
        (2, "content", "Looking 🔎"),
        (2, "call", '{"name":"find","arguments":{"id": 7}}'),
        (4, "content", "<think>Paris — so it is.</think>\n\nIn Paris."),
    ]
    assert yaml(got)["mask"] == "assistant"
    assert yaml(got)["exact"] is True


def test_except_reasoning_leaves_out_both_kinds(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant except reasoning }")
    row = got.texts("sft")[0]
    assert trained_texts(row) == [
        (2, "content", "Looking 🔎"),
        (2, "call", '{"name":"find","arguments":{"id": 7}}'),
        (4, "content", "In Paris."),
    ]
    assert row["weights"] == [0.0, 0.0, 1.0, 0.0, 1.0]
    assert yaml(got)["mask"] == "spans"
    assert yaml(got)["exact"] is False


def test_strip_shows_no_reasoning(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant except reasoning reasoning strip }")
    row = got.rows("sft")[0]
    assert [m["content"] for m in row["messages"]] == ["Be kind.", "Where is 7?", "Looking 🔎", "Paris", "In Paris."]
    assert all("reasoning_content" not in m for m in row["messages"])
    assert yaml(got)["mask"] == "assistant"


def test_only_last_gives_prompt_and_completion(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant only last }")
    row = got.texts("sft")[0]
    assert row["prompt"] + row["completion"] == row["messages"]
    assert len(row["completion"]) == 1
    assert [m for m, _, _ in trained_texts(row)] == [4]
    assert yaml(got)["mask"] == "completion"


def test_a_row_ends_with_its_last_trained_message(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant where count(calls) > 0 }")
    row = got.rows("sft")[0]
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant"]
    edited = got.ledger("sft").filter(pl.col("action") == "edited")
    assert edited.select("reason", "n").rows() == [("after_last_trained", 3)]
    uncut = made([run("1", user("a"), says("b"))], "emit sft { loss on assistant }", name="b")
    assert uncut.ledger("sft")["action"].to_list() == ["kept"]


def test_masked_messages_say_so(made: Make) -> None:
    got = made([WHOLE], "emit sft { loss on assistant where count(calls) == 0 }")
    row = got.rows("sft")[0]
    assert [m.get("weight") for m in row["messages"]] == [None, None, 0, None, None]
    assert row["weights"] == [0, 0, 0, 0, 1]
    assert yaml(got)["mask"] == "messages"
    assert yaml(got)["exact"] is False


def test_a_null_predicate_is_false(made: Make) -> None:
    record = run("1", user("a"), says("b"), user("c"), calls(("x", "find", '{"id": 1}')))
    got = made([record], 'emit sft { loss on assistant where calls_text ~ "find" }')
    assert got.rows("sft")[0]["weights"] == [0, 0, 0, 1]


def test_source_weight_counts(made: Make) -> None:
    record = run("1", user("a"), says("demo", weight=0), user("b"), says("real"))
    assert made([record], "emit sft { loss on assistant }").rows("sft")[0]["weights"] == [0, 0, 0, 1]


def test_copied_context_is_not_trained() -> None:
    turns = [(0, "assistant", 1.0, True, False), (1, "assistant", 1.0, False, False), (2, "user", 1.0, False, False)]
    schema = {"turn": pl.Int32, "role": pl.String, "loss_weight": pl.Float32}
    schema |= {"copied_context": pl.Boolean, "edited": pl.Boolean}
    frame = pl.DataFrame(turns, schema=schema, orient="row").with_columns(row=pl.lit(0, dtype=pl.UInt32))
    frames = Frames(pl.DataFrame({"row": [0]}, schema={"row": pl.UInt32}), frame)
    assert turn_weights(frames, plan.Loss()).to_list() == [0.0, 1.0, 0.0]


def test_an_edited_turn_is_context_unless_asked_for(made: Make) -> None:
    record = run("1", user("a"), says("first answer"), user("b"), says("second"))
    edit = 'turns set content = "x" where content == "first answer"'
    assert made([record], f"{edit} emit sft {{ loss on assistant }}").rows("sft")[0]["weights"] == [0, 0, 0, 1]
    both = made([record], f"{edit} emit sft {{ loss on assistant including edited }}", name="b").rows("sft")[0]
    assert both["weights"] == [0, 1, 0, 1]
    assert both["messages"][1]["content"] == "x"


def test_dropped_rows_have_a_rule_each(made: Make) -> None:
    records = [
        run("silent", user("a"), says("")),
        run("none"),
        run("long", user("a"), says("b" * 400)),
        run("good", user("a"), says("b")),
    ]
    got = made(records, "emit sft { loss on assistant fit 50 tokens else drop }")
    assert got.written["sft"].dropped == {"no_trained_text": 1, "no_turns": 1, "over_length": 1}
    assert got.written["sft"].rows == {"train": 1}
    got.conserved("sft")


def test_tokens_are_those_of_the_row(made: Make) -> None:
    row = made([WHOLE], "emit sft { loss on assistant except reasoning }").rows("sft")[0]
    # bytes / 4 rounded up, each text by itself
    assert row["n_tokens"] == 2 + 3 + (3 + 2 + 1 + 3) + 2 + 12
    assert row["n_trained"] == 3 + (1 + 3) + 3


@pytest.mark.parametrize("form", ["trl", "openai"])
def test_half_a_weight_is_refused(made: Make, form: str) -> None:
    records = [run(t, user("a"), says("b", weight=0.5)) for t in ("2", "1")]
    with pytest.raises(CuratecError) as error:
        made(records, f"emit sft {{ loss on assistant format {form} }}")
    found = error.value.diagnostics[0]
    assert found.code == "C0611"
    assert "0.5" in found.message


def test_a_negative_weight_is_refused(made: Make) -> None:
    with pytest.raises(CuratecError) as error:
        made([run("1", user("a"), says("b"))], "emit sft { loss on assistant weight 0 - 1 }")
    assert error.value.diagnostics[0].code == "C0619"


def test_a_null_weight_is_nothing(made: Make) -> None:
    got = made([run("1", user("a"), says("b"), reward=None)], "emit sft { loss on assistant weight trajectory.reward }")
    assert got.written["sft"].dropped == {"no_trained_text": 1}


def test_sort_by_gives_the_order_and_turns_shuffling_off(made: Make) -> None:
    records = [run(str(i), user("a"), says("b"), reward=r) for i, r in enumerate([0.1, 0.9, None, 0.5])]
    got = made(records, "emit sft { sort by reward desc loss on assistant }")
    assert [row["task"][-1] for row in got.rows("sft")] == ["1", "3", "0", "2"]
    args = yaml(got)["args"]
    assert isinstance(args, dict)
    assert args["train_sampling_strategy"] == "sequential"
    assert args["shuffle_dataset"] is False
