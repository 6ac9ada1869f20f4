"""Reading with several processes: the same parts as with one, and a clear end whatever happens to a process."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curatec.runtime import arrow_file
from curatec.runtime import ingest as module
from curatec.runtime.cache import Cache
from curatec.runtime.formats import pool
from curatec.runtime.formats.worker import Task
from curatec.runtime.ingest import Corpus, IngestError, Progress, ingest

from .conftest import USER, chat, lines

SAYS = {"role": "assistant", "content": "done"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes are at work from the first byte, on pieces of 20 KB."""
    monkeypatch.setattr(module, "_LITTLE", 0)
    monkeypatch.setattr(module, "PART_TEXT", 20_000)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A long file of lines with one that is broken, the same compressed, an array, and a file that no format knows."""
    folder = tmp_path / "in"
    folder.mkdir()
    records = [chat({"role": "user", "content": "é" * 400}, SAYS, n=number) for number in range(120)]
    text = lines(*records[:70]) + "{broken\n\n" + lines(*records[70:]) + '{"messages":'
    (folder / "a.jsonl").write_text(text)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "c.json").write_text(json.dumps(records))
    (folder / "d.json").write_text('{"name": "x"}')
    return sorted(folder.iterdir())


def read(files: list[Path], cache: Path, processes: int) -> Corpus:
    return ingest(files, base=files[0].parent, cache=Cache(cache), processes=processes)


def tables(corpus: Corpus, cache: Path) -> list[tuple[str, str]]:
    """The tables of all parts as text, with their place in the cache."""
    files = [file for part in corpus.parts for file in (part.runs, part.turns)]
    return [(str(file.relative_to(cache)), repr(arrow_file.read(file).rows(named=True))) for file in files]


def test_the_parts_are_the_same_with_one_process_and_with_three(files: list[Path], tmp_path: Path) -> None:
    one, three = (read(files, tmp_path / f"cache-{n}", n) for n in (1, 3))
    assert len(one.parts) > 8
    assert sum(one.formats.values()) == 3 * 120
    assert [(reject.file, reject.line) for reject in one.rejects] == [
        *(("a.jsonl", 71), ("a.jsonl", 123)),
        *(("b.jsonl.gz", 71), ("b.jsonl.gz", 123)),
        ("d.json", 0),
    ]
    assert one.rejects == three.rejects
    assert one.formats == three.formats
    assert tables(one, tmp_path / "cache-1") == tables(three, tmp_path / "cache-3")


def test_progress_is_told_from_all_processes(files: list[Path], tmp_path: Path) -> None:
    told: list[Progress] = []
    ingest(files, base=tmp_path, cache=Cache(tmp_path / "cache"), on_progress=told.append, processes=2)
    assert (told[-1].files_done, told[-1].bytes_done, told[-1].runs) == (4, told[-1].bytes_total, 360)
    assert len({progress.runs for progress in told}) > 5
    assert [progress.runs for progress in told] == sorted(progress.runs for progress in told)


def instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Processes that run this once they have been given a task."""
    script = f"import os, sys, time\nanswers = sys.stdout\nfor line in sys.stdin:\n    {code}"
    monkeypatch.setattr(pool, "_COMMAND", ("-c", script))


@pytest.mark.parametrize(
    ("code", "said"),
    [("os.kill(os.getpid(), 9)", "killed by signal 9"), ("sys.exit(3)", "ended with code 3")],
)
def test_a_process_that_ends_is_a_clear_error(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    instead(monkeypatch, code)
    with pytest.raises(IngestError, match=said) as caught:
        read(files, tmp_path / "cache", 2)
    assert caught.value.kind == "unreadable"
    assert "memory" in caught.value.help
    assert not list((tmp_path / "cache").glob("??/*"))
    assert not list((tmp_path / "cache").glob(".new-*"))


def test_errors_of_the_system_come_back_as_they_were(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = json.dumps(str(files[0]))
    instead(monkeypatch, f"""print('{{"error":[13,"Permission denied",{name}]}}', flush=True)""")
    with pytest.raises(IngestError, match=r"a\.jsonl cannot be read: Permission denied"):
        read(files[:1], tmp_path / "cache", 2)


def test_a_fault_of_our_own_says_where_it_was(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, """print('{"fault":"Traceback: it was line 7"}', flush=True)""")
    with pytest.raises(RuntimeError, match="line 7"):
        read(files[:1], tmp_path / "cache", 2)


def test_an_error_inside_a_process_is_reported(tmp_path: Path) -> None:
    with pool.Pool(1) as processes:
        task = Task((str(tmp_path / "gone.json"),), str(tmp_path), None)
        with pytest.raises(FileNotFoundError) as caught:
            processes.submit(task, lambda *_: None).result()
    assert caught.value.filename == str(tmp_path / "gone.json")


def test_what_is_printed_does_not_come_between_the_answers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "curatec_noise.py").write_text(
        "from curatec.runtime.formats import openai\n"
        "read = openai.OpenAi.read\n"
        "openai.OpenAi.read = lambda *given: print('noise') or read(*given)\n"
    )
    (tmp_path / "a.json").write_text(json.dumps(chat(USER)))
    code = "import curatec_noise; from curatec.runtime.formats.worker import main; main()"
    with pytest.MonkeyPatch.context() as patch, pool.Pool(1) as processes:
        patch.setattr(pool, "_COMMAND", ("-c", code))
        patch.setenv("PYTHONPATH", str(tmp_path))
        found = processes.submit(Task((str(tmp_path / "a.json"),), str(tmp_path), None), lambda *_: None).result()
    assert found.formats == {"openai": 1}
    assert "noise" in capfd.readouterr().err


def test_a_worker_ends_with_its_input() -> None:
    worker = subprocess.Popen([sys.executable, *pool._COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _, errors = worker.communicate(b"", timeout=60)
    assert (worker.returncode, errors) == (0, None)


INTERRUPTED = """
import sys
from pathlib import Path
from curatec.runtime import ingest
from curatec.runtime.cache import Cache
from curatec.runtime.formats import pool

ingest._LITTLE = 0
SLEEPS = "import os, sys, time; input(); print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"
pool._COMMAND = ("-c", SLEEPS)
ingest.ingest([Path(sys.argv[1])], base=Path("/"), cache=Cache(Path(sys.argv[2])), processes=2)
"""


def test_ctrl_c_leaves_no_process_and_no_half_entry(files: list[Path], tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(files[2]), str(tmp_path / "cache")]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert parent.stderr is not None
    child = int(parent.stderr.readline())
    parent.send_signal(signal.SIGINT)
    _, errors = parent.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert not list((tmp_path / "cache").glob(".new-*"))
    assert not list((tmp_path / "cache").glob("??/*"))
    for _ in range(100):  # whoever takes in orphans needs a moment
        if not alive(child):
            return
        time.sleep(0.05)
    raise AssertionError("a reading process is left")


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
