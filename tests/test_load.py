"""Specs and their imports: what is read, from where, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from curatec.compiler.check.program import check
from curatec.compiler.load import Program, inside, load, load_text, project_of
from curatec.dsl.diagnostics import CuratecError

STRATEGY = "strategy service {\n  from runs\n  emit sft { won: keep where success loss on assistant }\n}\n"
RUNS = 'source runs { path "runs/*.jsonl" }\n'


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.curate"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"curate 1\n{text}", encoding="utf-8")


def names(program: Program) -> list[str]:
    return [module.parsed.source.name for module in program.modules]


def told(program: Program) -> list[tuple[str, str]]:
    return [(d.code, d.source.name if d.source else "") for d in check(program).diagnostics]


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


# ---- imports ----


def test_imports_are_relative_to_the_importing_file(tmp_path: Path) -> None:
    write(tmp_path, main='import "lib/all.curate"\n' + STRATEGY, lib__all='import "runs.curate"\n', lib__runs=RUNS)
    program = load(str(tmp_path / "main.curate"))
    assert told(program) == []
    assert [Path(name).name for name in names(program)] == ["main.curate", "all.curate", "runs.curate"]
    assert [module.imported for module in program.modules] == [False, True, True]
    plan = check(program).plan(None)
    assert plan.corpora[0].base == str(tmp_path / "lib")


def test_a_diamond_reads_its_foot_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        main='import "a.curate"\nimport "b.curate"\nimport "./a.curate"\n' + STRATEGY,
        a='import "runs.curate"\n',
        b='import "runs.curate"\n',
        runs=RUNS,
    )
    program = load(str(tmp_path / "main.curate"))
    assert told(program) == []
    assert len(program.modules) == 4


def test_one_file_under_two_names_is_one_file(tmp_path: Path) -> None:
    write(tmp_path, main='import "runs.curate"\nimport "link.curate"\n' + STRATEGY, runs=RUNS)
    (tmp_path / "link.curate").symlink_to(tmp_path / "runs.curate")
    assert told(load(str(tmp_path / "main.curate"))) == []


def test_circles_are_refused_where_they_close(tmp_path: Path) -> None:
    write(tmp_path, main='import "a.curate"\n', a='import "b.curate"\n', b='import "main.curate"\n')
    program = load(str(tmp_path / "main.curate"))
    (problem,) = program.diagnostics
    assert problem.code == "C0210"
    assert problem.source is not None
    assert problem.source.name.endswith("b.curate")
    assert problem.note == "main.curate → a.curate → b.curate → main.curate"


def test_a_clash_names_the_first_place(tmp_path: Path) -> None:
    write(tmp_path, main='import "lib/runs.curate"\n\n' + RUNS + STRATEGY, lib__runs="\n" + RUNS)
    (problem,) = check(load(str(tmp_path / "main.curate"))).diagnostics
    assert (problem.code, problem.note.rpartition("/")[2]) == ("C0202", "main.curate:4")
    write(tmp_path, main='import "lib/runs.curate"\nimport "more.curate"\n' + STRATEGY, more=RUNS)
    (problem,) = check(load(str(tmp_path / "main.curate"))).diagnostics
    assert problem.note.endswith("lib/runs.curate:3")


def test_equal_mistakes_of_two_files_are_both_told(tmp_path: Path) -> None:
    write(tmp_path, main='import "a.curate"\nimport "b.curate"\n')
    for name in "ab":
        (tmp_path / f"{name}.curate").write_text(RUNS.replace("runs", name), encoding="utf-8")
    found = told(load(str(tmp_path / "main.curate")))
    assert [code for code, _ in found] == ["C0415", "C0415"]


def test_imports_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, main='import "none.curate"\nimport "."\nimport "latin.curate"\n')
    (tmp_path / "latin.curate").write_bytes(b"curate 1 # caf\xe9")
    found = load(str(tmp_path / "main.curate")).diagnostics
    assert [d.code for d in found] == ["C0210"] * 3
    assert [d.message.partition("`")[0] for d in found] == [
        "there is no file ",
        "",
        "not UTF-8: byte 0xe9 at offset 14",
    ]
    assert all(d.help for d in found)


def test_names_are_not_unknown_while_an_import_is_missing(tmp_path: Path) -> None:
    write(
        tmp_path,
        main='import "none.curate"\nstrategy s { from runs emit sft { a: keep where reward > least } }',
    )
    assert [code for code, _ in told(load(str(tmp_path / "main.curate")))] == ["C0210"]


def test_advice_about_imported_strategies_is_not_given(tmp_path: Path) -> None:
    steps = '  from runs\n  good: judge fair: bool using grader "Is it?"\n  limit 3 per task\n'
    lib = RUNS + f'model grader {{ name "m" }}\nstrategy other {{\n{steps}  emit sft {{ loss on assistant }}\n}}\n'
    write(tmp_path, main='import "lib.curate"\n' + STRATEGY, lib=lib)
    checked = check(load(str(tmp_path / "main.curate")))
    assert {(d.code, d.severity) for d in checked.diagnostics} == {("C0501", "warning")}
    assert checked.ok
    assert checked.strategies == ("service",)
    assert checked.plan(None).strategy == "service"


def test_a_family_with_a_mistake_is_told_in_its_own_file(tmp_path: Path) -> None:
    main = 'import "lib.curate"\n' + RUNS + STRATEGY.replace("emit", "families: tag failure\n  emit", 1)
    write(tmp_path, main=main, lib="failure loop { when reward > nothing_known }\n")
    (problem,) = check(load(str(tmp_path / "main.curate"))).diagnostics
    assert problem.source is not None
    assert problem.source.name.endswith("lib.curate")
    assert problem.source.excerpt(problem.span or pytest.fail("no span")) == "nothing_known"


# ---- the project ----


def test_the_project_is_the_work_tree_or_the_folder(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(inner) == inner
    (tmp_path / ".git").mkdir()
    assert project_of(inner) == tmp_path
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert project_of(inner) == tmp_path / "a"


def test_paths_stay_in_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "specs").mkdir(parents=True)
    outside.mkdir()
    (outside / "lib.curate").write_text("curate 1\n" + RUNS, encoding="utf-8")
    (project / "specs" / "link").symlink_to(outside)
    (project / "specs" / "up").symlink_to(project)
    inner = "strategy s { from runs emit sft { a: keep where success loss on assistant } }"
    for path, allowed in {
        "runs/*.jsonl": True,
        "../runs/*.jsonl": False,
        "up/runs/*.jsonl": False,
        "link/runs/*.jsonl": False,
        str(outside / "*.jsonl"): False,
        str(project / "specs" / "*.jsonl"): True,
        "runs/*/../../../x": False,
        "a/../b/*.jsonl": True,
        "a\\0b": False,
    }.items():
        text = f'curate 1\nsource runs {{ path "{path}" }}\n{inner}'
        codes = [d.code for d in check(load_text(text, "x.curate", project / "specs")).diagnostics]
        assert codes == ([] if allowed else ["C0411"]), path
    (project / ".git").mkdir()
    for path in ("../runs/*.jsonl", "up/runs/*.jsonl"):
        text = f'curate 1\nsource runs {{ path "{path}" }}\n{inner}'
        assert check(load_text(text, "x.curate", project / "specs")).ok
    text = f'curate 1\nimport "../../outside/lib.curate"\n{inner}'
    assert [d.code for d in load_text(text, "x.curate", project / "specs").diagnostics] == ["C0411"]
    program = load_text(text, "x.curate", project / "specs", (outside,))
    assert check(program, allowed=(outside,)).ok
    assert [d.code for d in check(program).diagnostics] == ["C0411"]


def test_inside_follows_links(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    assert inside(tmp_path / "in" / "x", tmp_path / "in")
    assert not inside(tmp_path / "in" / "link" / "x", tmp_path / "in")
    assert inside(tmp_path / "in" / "link" / "x", tmp_path / "in", (tmp_path / "out",))
    assert not inside(tmp_path / "inner", tmp_path / "in")


# ---- roots ----


@pytest.mark.parametrize(
    ("spec", "code"), [("none.curate", "C0601"), (".", "C0602"), ("a\0b", "C0602"), ("latin.curate", "C0001")]
)
def test_a_root_that_cannot_be_read(tmp_path: Path, spec: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.curate").write_bytes(b"\xe9")
    with pytest.raises(CuratecError) as raised:
        load(spec)
    assert [d.code for d in raised.value.diagnostics] == [code]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="rights do not bind this user")
def test_a_root_without_rights(tmp_path: Path) -> None:
    write(tmp_path, main="")
    (tmp_path / "main.curate").chmod(0)
    with pytest.raises(CuratecError, match="cannot be read"):
        load(str(tmp_path / "main.curate"))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec with an import, in two revisions, and a work tree that is different again."""
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, specs__main='import "runs.curate"\n' + STRATEGY, specs__runs=RUNS)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    write(tmp_path, specs__runs=RUNS.replace("runs/", "newer/"))
    git(tmp_path, "commit", "-qam", "two")
    write(tmp_path, specs__runs="nothing here")
    monkeypatch.chdir(tmp_path / "specs")
    return tmp_path


@pytest.mark.parametrize("path", ["specs/main.curate", "./main.curate", "../specs/main.curate"])
@pytest.mark.parametrize(("revision", "pattern"), [("HEAD", "newer/*.jsonl"), ("HEAD~1", "runs/*.jsonl")])
def test_revisions_are_read_whole(repository: Path, path: str, revision: str, pattern: str) -> None:
    program = load(f"{revision}:{path}")
    checked = check(program)
    assert checked.diagnostics == ()
    assert checked.plan(None).corpora[0].path == (pattern,)
    assert program.project == repository
    assert names(program)[0] == f"{revision}:{path}"


def test_a_revision_may_hold_what_the_work_tree_lost(repository: Path) -> None:
    (repository / "specs" / "runs.curate").unlink()
    (repository / "specs" / "main.curate").unlink()
    assert check(load("HEAD:specs/main.curate")).ok


@pytest.mark.parametrize(
    "spec", ["HEAD:none.curate", "nowhere:specs/main.curate", "--output=x:specs/main.curate", ":x"]
)
def test_revisions_that_git_does_not_have(repository: Path, spec: str) -> None:
    with pytest.raises(CuratecError) as raised:
        load(spec)
    (problem,) = raised.value.diagnostics
    assert problem.code == "C0601"
    assert problem.help
    assert not (repository / "specs" / "x").exists()


def test_imports_of_a_revision(repository: Path) -> None:
    write(repository, specs__round='import "round.curate"\nimport "lost.curate"\n')
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "three")
    found = load("HEAD:./round.curate").diagnostics
    assert [d.message for d in found] == ["this import closes a circle", "git has no `specs/lost.curate` at `HEAD`"]


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(CuratecError, match="in no git work tree"):
        load("HEAD:main.curate")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CuratecError, match="git is not installed"):
        load("HEAD:main.curate")
