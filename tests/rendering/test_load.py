"""Names → tokenizers, and what is said where there is none."""

from __future__ import annotations

import builtins
import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.rendering import Rendered, Renderer, load, tiny
from tests.rendering.conftest import BUILTIN
from tests.rendering.conversations import assistant, schema, user
from tests.rendering.styles import HERMES, MISTRAL, tokenizer


def loaded(name: str, base: Path, template: str | None = None, allowed: tuple[Path, ...] = ()) -> Renderer:
    return load(name, template, base, base, allowed)


def told(name: str, base: Path, template: str | None = None) -> tuple[str, str]:
    """Code, and everything that is said."""
    with pytest.raises(CuratecError) as raised:
        loaded(name, base, template)
    (found,) = raised.value.diagnostics
    assert found.help
    return found.code, " ".join((found.message, *found.help))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty Hugging Face cache."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


def text_of(renderer: Renderer, tools: list[str] | None = None) -> str:
    row = renderer.render([user("a"), assistant("b")], tools)
    assert isinstance(row, Rendered)
    return row.text


# ---- what comes with curatec ----


def test_the_built_in_tokenizer(tmp_path: Path) -> None:
    renderer = loaded(BUILTIN, tmp_path)
    assert renderer.tokenizer.get_vocab_size() == tiny.SIZE
    assert renderer.count(["", "a", "<think>", "<|im_end|>"]) == [0, 1, 1, 1]
    # Tags are not special: a trainer that decodes without special tokens still sees them.
    ids = renderer.tokenizer.encode("<tool_call><think>", add_special_tokens=False).ids
    assert renderer.tokenizer.decode(ids, skip_special_tokens=True) == "<tool_call><think>"


def test_the_built_in_files_are_those_of_the_script(tmp_path: Path) -> None:
    tiny.make(tmp_path)
    packaged = files("curatec.runtime.rendering") / "tiny_qwen3"
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (packaged / path.name).read_bytes(), path.name


def test_no_other_built_in(tmp_path: Path) -> None:
    code, said = told("builtin:tiny-qwen", tmp_path)
    assert code == "C0627"
    assert "builtin:tiny-qwen3" in said


# ---- folders ----


def test_a_folder_beside_the_spec(tmp_path: Path) -> None:
    HERMES.write(tmp_path / "models" / "mine")
    here, there = loaded("models/mine", tmp_path), loaded("mine", tmp_path / "models")
    assert here.digest == there.digest
    assert here.template_digest == there.template_digest
    assert text_of(here).startswith("<|begin|><|im_start|>user\na<|im_end|>\n")


def test_digests_tell_tokenizers_and_templates_apart(tmp_path: Path) -> None:
    HERMES.write(tmp_path / "a")
    HERMES.write(tmp_path / "b")
    HERMES.write(tmp_path / "c")
    tokenizer(HERMES, 500).save(str(tmp_path / "b" / "tokenizer.json"))
    with (tmp_path / "c" / "chat_template.jinja").open("a") as template:
        template.write("{# - #}")
    a, b, c = (loaded(name, tmp_path) for name in "abc")
    assert len({a.digest, b.digest, c.digest}) == 3
    assert a.template_digest == b.template_digest != c.template_digest


@pytest.mark.parametrize("where", ["config", "named", "tool_use", "json", "jinja"])
def test_where_a_template_may_stand(tmp_path: Path, where: str) -> None:
    folder = HERMES.write(tmp_path / "mine")
    (folder / "chat_template.jinja").unlink()
    one, other = "{{ 'plain' + messages[0].content }}", "{{ 'tools' + messages[0].content }}"
    config: dict[str, Any] = {"bos_token": {"content": "<|begin|>"}}
    match where:
        case "config":
            config["chat_template"] = one
        case "named" | "tool_use":
            named = [{"name": "default", "template": one}, {"name": "tool_use", "template": other}]
            config["chat_template"] = named if where == "tool_use" else named[:1]
        case "json":
            (folder / "chat_template.json").write_text(json.dumps({"chat_template": one}))
        case "jinja":
            config["chat_template"] = other
            (folder / "chat_template.jinja").write_text(one)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    renderer = loaded("mine", tmp_path)
    row = renderer.render([user("a")], None)
    assert isinstance(row, Rendered)
    assert row.text == "plaina"
    row = renderer.render([user("a")], [schema()])
    assert isinstance(row, Rendered)
    assert row.text == ("toolsa" if where == "tool_use" else "plaina")


def test_a_template_beside_the_spec_takes_the_place_of_the_tokenizers_own(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
    MISTRAL.write(tmp_path / "mine")
    assert text_of(loaded("mine", tmp_path, "mine.jinja")) == "<s>ab"


def test_paths_stay_in_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    HERMES.write(outside)
    (project / "link").symlink_to(outside)
    for name in ("../outside", str(outside), "link"):
        assert told(name, project)[0] == "C0411"
        assert loaded(name, project, allowed=(outside,)).name == name
    (outside / "t.jinja").write_text("{{ messages[0].content }}")
    code, said = told(BUILTIN, project, "../outside/t.jinja")
    assert code == "C0411"
    assert "--allow-path" in said


# ---- the local cache of the hub ----


def cached(hub: Path, name: str = "org/model", revision: str = "abc", *, main: bool = True) -> Path:
    model = hub / f"models--{name.replace('/', '--')}"
    folder = HERMES.write(model / "snapshots" / revision)
    if main:
        (model / "refs").mkdir(exist_ok=True)
        (model / "refs" / "main").write_text(revision)
    return folder


def test_a_model_in_the_local_cache(tmp_path: Path, no_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(no_cache)
    cached(no_cache, "gpt2", main=False)
    assert text_of(loaded("org/model", tmp_path)) == text_of(loaded("gpt2", tmp_path))
    other = tmp_path / "elsewhere"
    shutil.move(no_cache, other)
    assert told("org/model", tmp_path)[0] == "C0627"
    monkeypatch.setenv("HF_HUB_CACHE", str(other))
    assert loaded("org/model", tmp_path).name == "org/model"


def test_main_is_taken_of_several_versions(tmp_path: Path, no_cache: Path) -> None:
    cached(no_cache, revision="new")
    old = cached(no_cache, revision="old", main=False)
    (old / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert text_of(loaded("org/model", tmp_path)) != "a"
    (no_cache / "models--org--model" / "refs" / "main").unlink()
    code, said = told("org/model", tmp_path)
    assert code == "C0627"
    assert "several versions" in said


def test_nothing_is_fetched(tmp_path: Path) -> None:
    code, said = told("org/model", tmp_path)
    assert code == "C0627"
    assert "models--org--model" in said
    assert "hf download org/model" in said
    assert BUILTIN in said


# ---- what cannot be loaded ----


def test_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert "has no `tokenizer.json`" in told("empty", tmp_path)[1]
    assert "is a file" in told("file", tmp_path)[1]
    for name in ("./nowhere", "a/b/c", "", "no where", "a\0b"):
        code, said = told(name, tmp_path)
        assert code == "C0627"
        assert BUILTIN in said


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model": {"type": "none"}}', "\x00"])
def test_a_broken_tokenizer(tmp_path: Path, content: str) -> None:
    folder = HERMES.write(tmp_path / "mine")
    (folder / "tokenizer.json").write_text(content)
    code, said = told("mine", tmp_path)
    assert code == "C0627"
    assert "`tokenizer.json` of `mine` cannot be loaded" in said


def test_a_broken_configuration(tmp_path: Path) -> None:
    folder = HERMES.write(tmp_path / "mine")
    (folder / "tokenizer_config.json").write_text("{")
    code, said = told("mine", tmp_path)
    assert code == "C0627"
    assert "tokenizer_config.json" in said


@pytest.mark.parametrize(
    "config",
    [
        {"added_tokens_decoder": [1], "extra_special_tokens": 3, "bos_token": 5},
        {"added_tokens_decoder": {"x": {"content": "a"}, "1": {}, "2": {"content": 3}, "3": "a", "4": None}},
        {"extra_special_tokens": {"a": None}, "additional_special_tokens": "abc", "eos_token": {}},
        {"extra_special_tokens": "abc", "chat_template": [1, {"name": 2}]},
    ],
)
def test_a_configuration_of_another_shape(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = HERMES.write(tmp_path / "mine")
    before = loaded("mine", tmp_path).added
    (folder / "tokenizer_config.json").write_text(json.dumps({**HERMES.names, **config}))
    assert loaded("mine", tmp_path).added == before


def test_no_template(tmp_path: Path) -> None:
    folder = HERMES.write(tmp_path / "mine")
    (folder / "chat_template.jinja").unlink()
    code, said = told("mine", tmp_path)
    assert code == "C0628"
    assert "template" in said


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{{ messages", "line 1"), ("\n{% generation %}", "line 2"), ("{{ 1 | nothing }}", "No filter named 'nothing'")],
)
def test_a_template_that_does_not_compile(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "mine.jinja").write_text(text)
    code, said = told(BUILTIN, tmp_path, "mine.jinja")
    assert code == "C0628"
    assert "`mine.jinja` does not compile" in said
    assert reason in said


@pytest.mark.parametrize("name", ["none.jinja", "folder", "bytes.jinja", "a\0b"])
def test_a_template_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.jinja").write_bytes(b"\xff")
    code, said = told(BUILTIN, tmp_path, name)
    assert code == "C0628"
    assert "cannot be read" in said


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "tokenizers":
            raise ImportError(name)
        return imports(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    code, said = told(BUILTIN, tmp_path)
    assert code == "C0502"
    assert "pip install 'curatec[render]'" in said


def test_a_template_is_in_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ messages.__class__.__mro__[1].__subclasses__() }}")
    assert loaded(BUILTIN, tmp_path, "mine.jinja").render([user("a")], None) == "template_raises"
    (tmp_path / "mine.jinja").write_text("{{ messages.append(1) }}")
    assert loaded(BUILTIN, tmp_path, "mine.jinja").render([user("a")], None) == "template_raises"


def test_a_template_that_asks_for_the_date_gets_a_fixed_one(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ strftime_now('%d.%m.%Y') + messages[0].content }}")
    row = loaded(BUILTIN, tmp_path, "mine.jinja").render([user("a")], None)
    assert isinstance(row, Rendered)
    assert row.text == "01.01.2025a"
