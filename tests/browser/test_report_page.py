"""The report in real Chromium, at two widths and in both schemes: it fits, its labels are whole, its text legible."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import every_step
from tests.test_report import HOSTILE, QUICKSTART, conversation, make, spec

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
LOOK = (Path(__file__).parent / "look.html").read_text(encoding="utf-8")
Json = dict[str, Any]


@pytest.fixture
def chromium(tmp_path: Path) -> Callable[..., str]:
    def run(*options: str) -> str:
        profile = tmp_path / f"profile-{len(list(tmp_path.iterdir()))}"
        command = [str(CHROMIUM), *QUIET, f"--user-data-dir={profile}", *options]
        return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()

    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The quickstart, a corpus of texts that are too long, too wide or not meant to be shown, and one with every step
    that makes, replaces, redacts, joins or seals rows, under names that are too long."""
    work = tmp_path_factory.mktemp("pages")
    runs = [conversation(i, HOSTILE, model="M" * 200 + str(i), task_id="T" * 300 + str(i % 4)) for i in range(40)]
    because = "W" * 400
    gone = f'gone: drop where reward == 0 because "{because}"'
    strategy = f"strategy s {{\n from t\n {gone}\n emit sft {{ few: limit 2 per task_text }}\n}}"
    hostile = make(spec(work, runs, strategy, head="# " + "X" * 3_000), work / "hostile")
    long = every_step.SPEC
    for name in ("crowded", "renamed", "verdicts", "bench", "taught"):
        long = re.sub(rf"\b{name}\b(?!\.)", name + "_" + 12 * "longer", long)
    every = make(every_step.write(work / "every", long), work / "every" / "work")
    return {
        "shop": make(QUICKSTART / "service.curate", work / "shop").page,
        "hostile": hostile.page,
        "every": every.page,
    }


def look(chromium: Callable[..., str], folder: Path, page: str, width: int, *, dark: bool, unfold: bool) -> Json:
    around = (
        LOOK.replace("$width", str(width)).replace("$unfold", json.dumps(unfold)).replace("$page", html.escape(page))
    )
    file = folder / "around.html"
    file.write_text(around, encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    dom = chromium(scheme, "--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom", file.as_uri())
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert found
    assert found[1], "the page was not measured"
    told: Json = json.loads(html.unescape(found[1]))
    return told


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["shop", "hostile", "every"])
def test_nothing_overflows_and_all_can_be_read(
    chromium: Callable[..., str], tmp_path: Path, pages: dict[str, str], name: str, dark: bool, width: int
) -> None:
    found = look(chromium, tmp_path, pages[name], width, dark=dark, unfold=True)
    assert found["width"] == width
    assert found["scrolls"] == width
    assert not found["outside"]
    assert not found["cut"]
    assert not found["overlapping"]
    assert not found["faint"]
    assert found["paper"] == ("rgb(20, 24, 27)" if dark else "rgb(251, 251, 249)")
    assert found["height"] > 2_000


def test_folded_it_fits_as_well(chromium: Callable[..., str], tmp_path: Path, pages: dict[str, str]) -> None:
    found = look(chromium, tmp_path, pages["shop"], 390, dark=False, unfold=False)
    assert found["scrolls"] == 390
    assert not found["outside"]


def test_it_opens_from_disk(chromium: Callable[..., str], tmp_path: Path, pages: dict[str, str]) -> None:
    file = tmp_path / "report.html"
    file.write_text(pages["shop"], encoding="utf-8")
    dom = chromium("--dump-dom", file.as_uri())
    assert "Where the runs went" in dom
    assert dom.count("<svg") == pages["shop"].count("<svg")
    picture = tmp_path / "page.png"
    chromium(f"--screenshot={picture}", "--window-size=1280,2000", file.as_uri())
    # An empty page compresses to a few kilobytes.
    assert picture.stat().st_size > 60_000


def test_nothing_is_asked_of_the_network(chromium: Callable[..., str], tmp_path: Path, pages: dict[str, str]) -> None:
    """By the browser's own log of requests, also when the text is full of addresses."""

    def asked(name: str, page: str) -> list[str]:
        file, log = tmp_path / f"{name}.html", tmp_path / f"{name}.json"
        file.write_text(page, encoding="utf-8")
        chromium(f"--log-net-log={log}", "--dump-dom", file.as_uri())
        found = re.findall(r'"url":"(https?://[^"]*)"', log.read_text(encoding="utf-8", errors="replace"))
        return [url for url in found if "evil.test" in url or "pygal" in url or "w3.org" in url]

    assert asked("control", '<img src="http://evil.test/x">')
    for name, page in pages.items():
        assert not asked(name, page)
