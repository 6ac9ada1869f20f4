"""`curatec compile` and `try`: what a user sees, exit codes, and that a failure leaves the former output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SPEC, Place, digests, strays


def test_compile_writes_an_output_and_says_so(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "out")
    manifest = json.loads((place.root / "out" / "manifest.json").read_text())
    assert manifest["strategy"] == "small"
    assert {"sft", "memory", "README.md", "report.html", "ledger.parquet"} <= {
        p.name for p in (place.root / "out").iterdir()
    }
    assert "winners" in ran.out
    assert "harness noise" in ran.out
    assert "written to out" in ran.out
    assert "\x1b" not in ran.out + ran.err
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "C0617" in ran.err  # the line that cannot be read
    assert strays(place.root) == []


def test_a_file_lost_as_a_whole_is_no_record(place: Place) -> None:
    (place.root / "runs" / "b.jsonl").write_text('{"what": "is this"}\n')
    ran = place("compile", "small.curate", "-o", "out")
    assert "1 record and 1 whole file of source" in ran.err
    assert "b.jsonl" not in (place.root / "out" / "README.md").read_text()


def test_default_output_is_named_like_the_strategy(place: Place) -> None:
    place("compile", "small.curate", "-q")
    assert (place.root / "out" / "small" / "manifest.json").exists()


def test_json_has_the_parts_of_the_manifest(place: Place) -> None:
    data = place("compile", "small.curate", "-o", "out", "--json").json
    assert data["published"] is True
    assert data["out"] == "out"
    assert data["sinks"]["sft"]["rows"]
    assert [s["label"] for s in data["steps"]][1] == "crash"
    assert data["diagnostics"][0]["code"] == "C0617"


def test_quiet_prints_nothing(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "out", "-q")
    assert (ran.out, ran.err) == ("", "")


def test_dry_run_publishes_nothing(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "out", "--dry-run")
    assert "nothing was published" in ran.out
    assert not (place.root / "out").exists()


def test_limit_only_and_parameters(place: Place) -> None:
    data = place("compile", "small.curate", "--limit", "9", "--only", "sft", "-D", "most=1", "--json").json
    assert data["partial"]
    assert list(data["sinks"]) == ["sft"]
    assert data["steps"][0]["entered"] == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-D", "most=9"), "C0418"),
        (("-D", "mots=1"), "C0418"),
        (("-D", "most"), "NAME=VALUE"),
        (("-D", "most=1", "-D", "most=2"), "twice"),
        (("--only", "sftt"), "C0213"),
        (("--strategy", "big"), "C0417"),
        (("--memory", "much"), "write 4GB, 800MB or 1.5GiB"),
        (("--memory", "4"), "too little"),
        (("--engine", "spark"), "spark"),
        (("--limit", "0"), "limit"),
        (("--limt", "3"), "--limit"),
        (("--threads", "none"), "threads"),
    ],
)
def test_wrong_usage_exits_2(place: Place, arguments: tuple[str, ...], said: str) -> None:
    ran = place("compile", "small.curate", *arguments, code=2)
    assert said in ran.err
    assert ran.out == ""
    data = place("compile", "small.curate", *arguments, "--json", code=2).json
    assert data["diagnostics"]


def test_unknown_command_has_a_neighbour(place: Place) -> None:
    assert "`compile`" in place("complie", "small.curate", code=2).err
    place(code=2)


def test_wrong_spec_is_told_with_place(place: Place) -> None:
    (place.root / "wrong.curate").write_text(SPEC.replace("reward desc", "rewrad desc"), encoding="utf-8")
    ran = place("compile", "wrong.curate", code=1)
    assert "wrong.curate:" in ran.err
    assert "`reward`" in ran.err
    assert ran.err.count("error[") == 2
    data = place("compile", "wrong.curate", "--json", code=1).json
    assert data["diagnostics"][0]["at"]["file"] == "wrong.curate"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00c", b"", b"curate 1\n", b"\x1f\x8b\x08", b"}" * 40])
def test_broken_spec_files(place: Place, content: bytes) -> None:
    (place.root / "broken.curate").write_bytes(content)
    ran = place("compile", "broken.curate", code=None)
    assert ran.code in (1, 2)
    assert "error" in ran.err


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "C06"),
        (b"\x00\x01\x02", "C06"),
        (b'{"a": 1}\n', "C0605"),
        (b"not json\n" * 3, "C06"),
        (b"\x1f\x8b\x08garbage", "C06"),
    ],
)
def test_broken_runs(place: Place, content: bytes, code: str) -> None:
    (place.root / "runs" / "a.jsonl").write_bytes(content)
    ran = place("compile", "small.curate", "-o", "out", code=1)
    assert code in ran.err
    assert not (place.root / "out").exists()
    assert strays(place.root) == []


def test_failed_expectation_keeps_the_former_output(place: Place) -> None:
    place("compile", "small.curate", "-o", "out", "-q")
    before = digests(place.root / "out")
    (place.root / "small.curate").write_text(SPEC.replace(">= most - 1", ">= 1_000"), encoding="utf-8")
    ran = place("compile", "small.curate", "-o", "out", code=1)
    assert "C0614" in ran.err
    assert digests(place.root / "out") == before
    assert strays(place.root) == []


def test_foreign_files_are_not_replaced(place: Place) -> None:
    other = place.root / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    assert "C0612" in place("compile", "small.curate", "-o", "mine", code=1).err
    assert (other / "thesis.txt").read_text() == "years of work"
    assert "C0612" in place("compile", "small.curate", "-o", "small.curate", code=1).err


def test_a_link_stays_a_link(place: Place) -> None:
    (place.root / "real").mkdir()
    (place.root / "link").symlink_to("real")
    for _ in range(2):
        place("compile", "small.curate", "-o", "link", "-q")
        assert (place.root / "link").is_symlink()
        assert (place.root / "real" / "manifest.json").exists()


def test_the_current_folder_is_not_replaced(place: Place) -> None:
    ran = Place(place.root)("compile", "small.curate", "-o", ".", code=1)
    assert "C0612" in ran.err
    assert (place.root / "small.curate").exists()


def test_output_that_cannot_be_made(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "small.curate/out", code=1)
    assert "cannot be written" in ran.err


def test_rev_path(place: Place) -> None:
    import subprocess

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=place.root,
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    git("add", "small.curate")
    git("commit", "-qm", "x")
    (place.root / "small.curate").write_text("broken", encoding="utf-8")
    place("compile", "HEAD:small.curate", "-o", "out", "-q")
    assert (place.root / "out" / "manifest.json").exists()
    assert "C0601" in place("compile", "HEAD:nothing.curate", code=1).err


def test_try_leaves_nothing(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    before = set(place.root.iterdir())
    ran = place("try", "small.curate", "--rows", "9", TMPDIR=str(temporary))
    assert "winners" in ran.out
    assert ran.out.count("\nrun ") == 2
    assert list(temporary.iterdir()) == []
    assert {p.name for p in set(place.root.iterdir()) - before} <= {".cache"}
    data = place("try", "small.curate", "--json").json
    assert data["published"] is False
    assert len(data["examples"]) == 2


def test_try_tells_a_failing_expectation_and_goes_on(place: Place) -> None:
    (place.root / "small.curate").write_text(SPEC.replace(">= most - 1", ">= 1_000"), encoding="utf-8")
    assert "FAILS" in place("try", "small.curate").out


def test_parts_that_do_nothing_yet_say_so(place: Place) -> None:
    ran = place("compile", "small.curate", "-o", "out", "--trust")
    assert "`--trust`" in ran.err


def test_no_cache_keeps_nothing(place: Place) -> None:
    place("compile", "small.curate", "-o", "out", "-q", "--no-cache")
    cache = Path(place.environment["CURATEC_CACHE_DIR"])
    assert not list(cache.rglob("*.parquet"))  # the tables of the grammar may be there
