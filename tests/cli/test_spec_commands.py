"""Commands on specs and raw files: check, fmt, plan, explain, inspect, init; help; streams."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import SPEC, Place, corpus, write_lines

COMMANDS = ("compile", "check", "fmt", "plan", "explain", "why", "show", "verify", "inspect", "init", "try")
UGLY = 'curate 1\nsource a{path "a.jsonl"} # mine\nstrategy s{from a emit sft{loss on assistant}}\n'


NO_HEAVY_IMPORT = """
import sys
from curatec.runtime.cli.app import run
code = run([{command!r}, "--help"])
heavy = {{"polars", "pyarrow", "lark", "pydantic", "rich"}} & set(sys.modules)
assert code == 0 and not heavy, heavy
"""
FAULT = """
from curatec.runtime.cli import guard
guard.prepare()
raise SystemExit(guard.guarded(lambda: [][0], as_json=False))
"""
PANIC = """
from curatec.runtime.cli import guard
class PanicException(BaseException):
    pass
def work():
    raise PanicException("called `Result::unwrap()` on an `Err` value: PyErr { type: <class 'KeyboardInterrupt'> }")
guard.prepare()
raise SystemExit(guard.guarded(work, as_json=False))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_data_library(place: Place, command: str) -> None:
    import subprocess
    import sys

    code = NO_HEAVY_IMPORT.format(command=command)
    done = subprocess.run([sys.executable, "-c", code], cwd=place.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"curatec {command}" in done.stdout
    assert "JSON:" in done.stdout


def test_group_help_and_version(place: Place) -> None:
    ran = place("--help")
    assert all(command in ran.out for command in COMMANDS)
    assert "130 interrupted" in ran.out
    assert place("--version").out.startswith("curatec ")


# ---- check ----


def test_check_says_effects(place: Place) -> None:
    ran = place("check", "small.curate")
    assert "no errors" in ran.out
    assert "runs: runs/*" in ran.out
    assert "no model call" in ran.out
    data = place("check", "small.curate", "--json").json
    assert data["specs"][0]["ok"]
    assert data["specs"][0]["effects"]["beyond"] == []


def test_check_tells_every_error_of_every_file(place: Place) -> None:
    (place.root / "a.curate").write_text(SPEC.replace("success", "sucess").replace("task,", "tusk,"), encoding="utf-8")
    (place.root / "b.curate").write_text("curate 1\nsorce x {}\n", encoding="utf-8")
    ran = place("check", "a.curate", "b.curate", "small.curate", "nothing.curate", code=1)
    assert ran.err.count("error[") >= 4
    assert "b.curate:2" in ran.err
    assert "small.curate: no errors" in ran.out
    data = place("check", "a.curate", "b.curate", "--json", code=1).json
    assert len(data["diagnostics"]) >= 3
    assert not data["specs"][0]["ok"]


# ---- fmt ----


def test_fmt_writes_in_place_and_keeps_the_mode(place: Place) -> None:
    folder = place.root / "specs"
    folder.mkdir()
    for name in ("a.curate", "b.curate"):
        (folder / name).write_text(UGLY, encoding="utf-8")
    os.chmod(folder / "a.curate", 0o640)
    (folder / "link.curate").symlink_to("b.curate")
    ran = place("fmt", "specs", "small.curate")
    assert "formatted specs/a.curate" in ran.out
    assert stat.S_IMODE((folder / "a.curate").stat().st_mode) == 0o640
    assert (folder / "link.curate").is_symlink()
    assert "# mine" in (folder / "b.curate").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["a.curate", "b.curate", "link.curate"]
    assert place("fmt", "--check", "specs").out == ""


def test_fmt_check_diff_and_stdin_write_nothing(place: Place) -> None:
    (place.root / "u.curate").write_text(UGLY, encoding="utf-8")
    assert "would change u.curate" in place("fmt", "--check", "u.curate", code=1).out
    assert "+++ b/u.curate" in place("fmt", "--diff", "u.curate", code=1).out
    assert (place.root / "u.curate").read_text() == UGLY
    formatted = place("fmt", "-", given=UGLY).out
    assert formatted.startswith("curate 1\n\nsource a {")
    assert place("fmt", "-", given=formatted).out == formatted
    assert place("fmt", "-", "--json", given=UGLY).json["files"][0]["text"] == formatted


def test_fmt_leaves_what_it_cannot_read(place: Place) -> None:
    (place.root / "w.curate").write_text("curate 1\nstrategy {", encoding="utf-8")
    ran = place("fmt", "w.curate", "small.curate", "nothing.curate", code=1)
    assert "w.curate" in ran.err
    assert "nothing.curate" in ran.err
    assert (place.root / "w.curate").read_text() == "curate 1\nstrategy {"


# ---- plan ----


def test_plan_right_after_compile_has_no_changes(place: Place) -> None:
    first = place("plan", "small.curate", "-o", "out")
    assert "not there yet" in first.out
    assert "24" in first.out
    place("compile", "small.curate", "-o", "out", "-q")
    assert place("plan", "small.curate", "-o", "out").out.startswith("no changes")
    assert place("plan", "small.curate", "-o", "out", "--json").json["changes"] is False


def test_plan_says_what_changed_and_why(place: Place) -> None:
    place("compile", "small.curate", "-o", "out", "-q")
    spec = place.root / "small.curate"
    spec.write_text(SPEC.replace("limit 2", "limit 1").replace("crash:", "crashed:"), encoding="utf-8")
    data = place("plan", "small.curate", "-o", "out", "--json").json
    states = {(s["branch"], s["name"]): s["state"] for s in data["steps"]}
    assert states[None, "crashed"] == "same"
    assert states["sft", "few"] == "changed"
    assert states["sft", "winners"] == "same"
    assert {s["name"]: s["state"] for s in data["sinks"]} == {"sft": "after", "memory": "same"}
    spec.write_text(SPEC.replace("# ", "").replace("harness noise", "noise"), encoding="utf-8")
    assert "change no row" in place("plan", "small.curate", "-o", "out").out.replace("\n  ", " ")
    spec.write_text(SPEC, encoding="utf-8")
    write_lines(place.root / "runs" / "b.jsonl", corpus(7)[-4:])
    ran = place("plan", "small.curate", "-o", "out")
    assert "changed: +4 runs" in ran.out
    assert "runs again" in ran.out
    (place.root / "runs" / "b.jsonl").unlink()
    (place.root / "out" / "README.md").write_text("x")
    assert "README.md" in place("plan", "small.curate", "-o", "out").out


def test_a_new_name_of_a_file_changes_nothing(place: Place) -> None:
    place("compile", "small.curate", "-o", "out", "-q")
    (place.root / "runs" / "a.jsonl").rename(place.root / "runs" / "b.jsonl")
    assert place("plan", "small.curate", "-o", "out").out.startswith("no changes")


# ---- explain ----


def test_explain_code(place: Place) -> None:
    assert place("explain", "c0104").out.startswith("## C0104")
    assert "C0625" in place("explain", "C9999", code=1).err
    assert place("explain", "C0104", "--json").json["code"] == "C0104"


def test_explain_spec_fills_in_names_and_says_where_turns_are_read(place: Place) -> None:
    ran = place("explain", "small.curate")
    assert "limit 2 per task order by reward desc" in ran.out
    assert "measures" in ran.out
    assert "reads all turns that are left, writes them again" in ran.out
    data = place("explain", "small.curate", "--json").json
    once = next(s for b in data["branches"] for s in b["steps"] if s["label"] == "once")
    assert once["reads_turns"]
    assert once["measures"]


def test_explain_shows_what_an_engine_runs(place: Place) -> None:
    plain = place("explain", "small.curate").out
    shown = {engine: place("explain", "small.curate", "--engine", engine).out for engine in ("duckdb", "polars")}
    assert "select" not in plain
    assert "group by turns.run" in shown["duckdb"]
    assert "partition by k0" in shown["duckdb"]
    assert ".group_by(run)" in shown["polars"]
    assert "select\n" not in shown["polars"]
    for text in shown.values():
        assert set(plain.splitlines()) <= set(text.splitlines())
    data = place("explain", "small.curate", "--engine", "duckdb", "--json").json
    assert all(step["runs"] for branch in data["branches"] for step in branch["steps"])


# ---- inspect and init ----


def test_inspect_counts(place: Place) -> None:
    data = place("inspect", "runs", "--json").json
    assert data["runs"] == 24
    assert data["formats"] == {"openai": 24}
    assert data["rejected"] == 1
    assert data["tasks"] == 6
    assert data["tools"] == {"look": 30}
    assert any("error when" in hint for hint in data["hints"])
    ran = place("inspect", "runs/*.jsonl")
    assert "24 runs in 1 files" in ran.out
    assert "hints" in ran.out
    assert "C0603" in place("inspect", "nothing.jsonl", code=1).err


def test_init_compiles_as_it_is(place: Place) -> None:
    place("init", "fresh")
    place("check", "fresh/curation.curate")
    ran = place("compile", "fresh/curation.curate", "-o", "o", "--json")
    assert ran.json["sinks"]["sft"]["rows"]["train"]
    assert place("verify", "o").code == 0
    assert place("fmt", "--check", "fresh/curation.curate").code == 0
    assert "C0626" in place("init", "fresh", code=1).err


def test_init_from_runs(place: Place) -> None:
    place("init", "mine", "--from", "runs")
    text = (place.root / "mine" / "curation.curate").read_text(encoding="utf-8")
    assert 'path "../runs"' in text
    assert "error when content ~" in text
    assert "winners: keep where success" in text
    data = place("compile", "mine/curation.curate", "-o", "o", "--json", "--allow-path", "runs").json
    assert sum(data["sinks"]["sft"]["rows"].values())


# ---- streams ----


def test_plain_encodings(finished: Place) -> None:
    for environment in (
        {"PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ):
        ran = finished("show", "out", "t1.1", **environment)
        assert ran.out.isascii()
        assert "[[well 1]]" in ran.out
        assert finished("why", "out", "t1.1", **environment).out.isascii()
        assert json.loads(finished("show", "out", "--json", **environment).out)


def test_unusual_names_of_files(place: Place) -> None:
    odd = os.fsdecode("r\u00e4t\u2192".encode() + b"\xff.curate")
    (place.root / odd).write_text(SPEC.replace("success", "sucess"), encoding="utf-8")
    assert "error[" in place("check", odd, code=1).err
    assert place("check", odd, "--json", code=1).json["diagnostics"]


def test_a_fault_of_curatec_is_told_in_two_lines(place: Place, tmp_path: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", FAULT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "C0999" in done.stderr
    assert "Traceback" not in done.stderr
    [saved] = tmp_path.glob("curatec-error-*.txt")
    assert str(saved) in done.stderr
    assert "IndexError" in saved.read_text()


def test_a_panic_of_the_engine_under_ctrl_c_is_an_interruption() -> None:
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", PANIC], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize(
    "arguments", [("compile", "small.curate", "-o", "{}"), ("convert", "{}", "--to", "trl", "-o", "x.jsonl")]
)
def test_a_name_that_no_file_can_have(place: Place, arguments: tuple[str, ...]) -> None:
    ran = place(*(argument.format("x" * 300) for argument in arguments), code=1)
    assert "C0603" in ran.err
    assert "is too long" in ran.err
