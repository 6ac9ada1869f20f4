"""From patterns to files: globs, directories, links, borders, and the errors that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from curatec.runtime.ingest import IngestError, ingest, resolve


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (
        "data/a.json",
        "data/b.jsonl",
        "data/deep/c.traj",
        "data/deep/d.json.gz",
        "data/README.md",
        "data/.hid/e.json",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (tmp_path / "outside.json").write_text("{}")
    return root


def names(patterns: list[str], project: Path, *allow: Path) -> list[str]:
    return [path.relative_to(project).as_posix() for path in resolve(patterns, project, project, allow)]


def test_patterns(project: Path) -> None:
    assert names(["data/b.jsonl", "data/a.json"], project) == ["data/b.jsonl", "data/a.json"]
    assert names(["data"], project) == ["data/a.json", "data/b.jsonl", "data/deep/c.traj", "data/deep/d.json.gz"]
    assert names(["data/**/*.json"], project) == ["data/a.json"]
    assert names(["data/**"], project) == names(["data"], project)
    assert names(["data/*"], project) == ["data/a.json", "data/b.jsonl"]
    assert names(["data/*.md"], project) == ["data/README.md"]
    assert names(["data/a.json", "data"], project)[0] == "data/a.json"
    assert len(names(["data/a.json", "data"], project)) == 4


def test_a_name_that_looks_like_a_pattern(project: Path) -> None:
    (project / "x[1].json").write_text("{}")
    assert names(["x[1].json"], project) == ["x[1].json"]


@pytest.mark.parametrize(
    ("pattern", "kind", "says"),
    [
        ("data/aa.json", "missing_file", "did you mean a.json?"),
        ("nowhere/a.json", "missing_file", "does not exist either"),
        ("data/*.parquet", "empty_glob", ""),
        ("s3://bucket/x.jsonl", "object_store", "copy the files"),
        ("https://host/x.jsonl", "object_store", "copy the files"),
        ("../outside.json", "outside_project", "--allow-path"),
        ("../*.json", "outside_project", "--allow-path"),
    ],
)
def test_errors(project: Path, pattern: str, kind: str, says: str) -> None:
    with pytest.raises(IngestError) as caught:
        resolve([pattern], project, project)
    assert (caught.value.kind, caught.value.path) == (kind, pattern)
    assert says in caught.value.help


def test_links_are_followed_before_the_border_is_checked(project: Path, tmp_path: Path) -> None:
    (project / "link.json").symlink_to(tmp_path / "outside.json")
    (project / "inner.json").symlink_to(project / "data" / "a.json")
    with pytest.raises(IngestError) as caught:
        resolve(["link.json"], project, project)
    assert caught.value.kind == "outside_project"
    assert names(["link.json"], project, tmp_path) == ["link.json"]
    assert names(["inner.json", "data/a.json"], project) == ["inner.json"]


def test_a_directory_without_data(project: Path) -> None:
    (project / "none").mkdir()
    with pytest.raises(IngestError, match="no data file"):
        resolve(["none"], project, project)


def test_a_file_that_goes_away(project: Path) -> None:
    with pytest.raises(IngestError) as caught:
        ingest([project / "gone.json"], base=project)
    assert caught.value.kind == "missing_file"
