"""A name → a `Renderer`: what comes with curatec, a folder, or the local Hugging Face cache. Never the network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import xxhash

from curatec.compiler.load import inside
from curatec.dsl.diagnostics import CuratecError, did_you_mean
from curatec.runtime.rendering.renderer import Renderer
from curatec.runtime.rendering.shape import shape_of
from curatec.runtime.rendering.template import Template, compile_template

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BUILTIN = {"builtin:tiny-qwen3": "curatec.runtime.rendering.tiny_qwen3"}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
# The names that transformers hands to templates.
_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_OFFLINE = "name a folder with `tokenizer.json`, or `builtin:tiny-qwen3`, which needs no files"


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a tokenizer; `default` and `tool_use` are its templates."""

    tokenizer: bytes
    config: Mapping[str, Any]
    default: str | None
    tool_use: str | None


def load(name: str, template: str | None, base: Path, project: Path, allowed: tuple[Path, ...]) -> Renderer:
    """The tokenizer `name` with its own chat template, or with the file `template`.

    Raises CuratecError: C0502 (not installed), C0411 (a path leaves the project), C0627 (no tokenizer), C0628 (no
    template that compiles).
    """
    _installed()
    found = _read(_folder(name, base, project, allowed), name)
    if template is not None:
        own = _template_file(template, base, project, allowed)
        found = _Files(found.tokenizer, found.config, own, None)
    shown_name = name if template is None else template
    if found.default is None:
        raise CuratecError.of(
            "C0628",
            f"`{name}` has no chat template",
            help='write `template "FILE.jinja"` behind it, or name a tokenizer of a chat model',
            place=name,
        )
    texts = {False: found.default, True: found.tool_use or found.default}
    tokenizer = _tokenizer(found.tokenizer, name)
    _add_tokens(tokenizer, found.config)
    names = {key: text for key in _NAMES if (text := _content(found.config.get(key))) is not None}
    added = {number: token.content for number, token in sorted(tokenizer.get_added_tokens_decoder().items())}
    special = _special(tokenizer)
    templates = {tools: _compiled(text, names, shown_name) for tools, text in texts.items()}
    shapes = {tools: shape_of(made, special) for tools, made in templates.items()}
    said = json.dumps([texts[False], texts[True], names], sort_keys=True).encode()
    template_digest = xxhash.xxh3_128_hexdigest(said)
    whole = b"\0".join((found.tokenizer, json.dumps(added).encode(), said))
    digest = xxhash.xxh3_128_hexdigest(whole)
    return Renderer(name, digest, template_digest, tokenizer, templates, shapes, special, added)


def _installed() -> None:
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        raise CuratecError.of(
            "C0502",
            "`render` needs the package `tokenizers`, and it is not installed",
            help="pip install 'curatec[render]'",
        ) from None


# ---- where the files are ----


def _folder(name: str, base: Path, project: Path, allowed: tuple[Path, ...]) -> Traversable:
    if name.startswith("builtin:"):
        if name not in _BUILTIN:
            raise CuratecError.of(
                "C0627",
                f"there is no `{name}`",
                help=(*did_you_mean(name, _BUILTIN), "built in are: " + ", ".join(f"`{known}`" for known in _BUILTIN)),
                place=name,
            )
        return files(_BUILTIN[name])
    if "\0" in name:
        raise CuratecError.of("C0627", "this name of a tokenizer holds a null character", help=_OFFLINE)
    here = base / name
    if here.is_dir():
        _stay(here, name, project, allowed)
        return here
    if here.exists() or not _HUB_ID.fullmatch(name):
        why = "is a file, not a folder" if here.exists() else "is no folder here"
        raise CuratecError.of("C0627", f"`{name}` {why}", help=_OFFLINE, place=name)
    return _cached(name)


def _stay(path: Path, shown: str, project: Path, allowed: tuple[Path, ...]) -> None:
    if not inside(path, project, allowed):
        raise CuratecError.of(
            "C0411",
            "this path leaves the project",
            help="move the files into the project, or pass `--allow-path DIR`",
            place=shown,
        )


def _cached(name: str) -> Path:
    """The snapshot that the local cache has of a model of the hub: `main`, or the only one."""
    hub = _hub()
    model = hub / f"models--{name.replace('/', '--')}"
    main = model / "refs" / "main"
    snapshots = model / "snapshots"
    if main.is_file():
        snapshot = snapshots / main.read_text(encoding="utf-8").strip()
        if snapshot.is_dir():
            return snapshot
    held = sorted(snapshots.iterdir()) if snapshots.is_dir() else []
    if len(held) == 1:
        return held[0]
    why = "has several versions of it and no `main`" if held else "has none"
    raise CuratecError.of(
        "C0627",
        f"`{name}` is no folder here, and the local Hugging Face cache {why}: curatec looked for `{model.name}` there",
        help=(
            f"where there is a network, run `hf download {name} tokenizer.json tokenizer_config.json "
            "chat_template.jinja` once",
            "HF_HUB_CACHE or HF_HOME says where the cache is; curatec itself never goes to the network",
            _OFFLINE,
        ),
        place=name,
    )


def _hub() -> Path:
    """The cache as huggingface_hub finds it."""
    environment = os.environ
    if hub := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        return Path(hub).expanduser()
    cache = Path(environment.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(environment.get("HF_HOME") or cache).expanduser() / "hub"


# ---- what is in them ----


def _read(folder: Traversable, name: str) -> _Files:
    tokenizer = _bytes(folder / "tokenizer.json")
    if tokenizer is None:
        raise CuratecError.of("C0627", f"`{name}` has no `tokenizer.json`", help=_OFFLINE, place=name)
    config = _json(folder / "tokenizer_config.json", name)
    special = _json(folder / "special_tokens_map.json", name)
    beside = _json(folder / "chat_template.json", name).get("chat_template")
    named = _named(config.get("chat_template") if beside is None else beside)
    if (alone := _bytes(folder / "chat_template.jinja")) is not None:
        named = {"default": alone.decode(errors="replace")}
        more = _bytes(folder / "additional_chat_templates" / "tool_use.jinja")
        named |= {"tool_use": more.decode(errors="replace")} if more is not None else {}
    return _Files(tokenizer, {**special, **config}, named.get("default"), named.get("tool_use"))


def _named(template: Any) -> dict[str, str]:
    """A template is one text, or a list of them with names."""
    if isinstance(template, str):
        return {"default": template}
    if isinstance(template, list):
        listed = [one for one in template if isinstance(one, dict)]
        template = {one.get("name"): one.get("template") for one in listed}
    if isinstance(template, dict):
        return {k: text for k, text in template.items() if isinstance(k, str) and isinstance(text, str)}
    return {}


def _bytes(path: Traversable) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CuratecError.of("C0627", f"`{path.name}` cannot be read: {error.strerror}", help=_OFFLINE) from None


def _json(path: Traversable, name: str) -> dict[str, Any]:
    raw = _bytes(path)
    if raw is None:
        return {}
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise _broken(name, path.name, error) from None
    if not isinstance(value, dict):
        raise _broken(name, path.name, ValueError("it is not a JSON object"))
    return value


def _broken(name: str, file: str, error: Exception) -> CuratecError:
    reason = " ".join(str(error).split())[:200]
    return CuratecError.of(
        "C0627", f"`{file}` of `{name}` cannot be loaded: {reason}", help=("fetch the file again", _OFFLINE), place=name
    )


def _tokenizer(raw: bytes, name: str) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        made = Tokenizer.from_buffer(raw)
    except Exception as error:  # the binding raises a bare Exception for everything
        raise _broken(name, "tokenizer.json", error) from None
    made.no_truncation()
    made.no_padding()
    # It adds special tokens, which nothing here asks for, and may shorten offsets by white space, which masks need.
    made.post_processor = None
    return made


def _special(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    found = [t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special and t.content.strip()]
    longest_first = sorted(set(found), key=lambda content: (-len(content), content))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _add_tokens(tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """What the configuration names beyond `tokenizer.json`, in the order in which transformers adds it."""
    from tokenizers import AddedToken

    known = {repr(token) for token in tokenizer.get_added_tokens_decoder().values()}
    decoder = config.get("added_tokens_decoder")
    numbered = decoder.items() if isinstance(decoder, dict) else ()
    fitted = [(int(number), token) for number, token in numbered if number.isdigit() and _content(token) is not None]
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    tokens = [
        AddedToken(token["content"], **{flag: token[flag] for flag in flags if isinstance(token.get(flag), bool)})
        for _, token in sorted(fitted, key=lambda pair: pair[0])
        if isinstance(token, dict)
    ]
    tokenizer.add_tokens([token for token in tokens if repr(token) not in known])
    held = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or ()
    listed = list(extra.values()) if isinstance(extra, dict) else extra if isinstance(extra, list) else []
    more = [config.get(key) for key in _NAMES] + listed
    contents = dict.fromkeys(text for token in more if (text := _content(token)) and text not in held)
    tokenizer.add_tokens([AddedToken(text, special=True) for text in contents])


def _content(token: Any) -> str | None:
    """A token is a text, or an object that holds one."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


# ---- templates ----


def _template_file(template: str, base: Path, project: Path, allowed: tuple[Path, ...]) -> str:
    path = base / template
    try:
        _stay(path, template, project, allowed)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError:
        why = "it is not UTF-8, or its name holds a null character"
    raise CuratecError.of(
        "C0628",
        f"the template `{template}` cannot be read: {why}",
        help="the path is relative to the folder of the spec",
        place=template,
    )


def _compiled(text: str, names: Mapping[str, str], shown: str) -> Template:
    try:
        return compile_template(text, names)
    except jinja2.TemplateSyntaxError as error:
        raise CuratecError.of(
            "C0628",
            f"the chat template of `{shown}` does not compile: line {error.lineno}: {error.message}",
            help="correct it, or name another one with `template`",
            place=shown,
        ) from None
