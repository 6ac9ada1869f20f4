"""The tokens of a row as text, told apart by whether they are trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curatec.compiler.load import project_of
from curatec.dsl.diagnostics import CuratecError
from curatec.runtime.answers.output import Output

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

_IGNORED = -100


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of tokens that follow each other and are all trained, or all not."""

    text: str
    trained: bool


def pieces(decode: Callable[[list[int]], str], ids: Sequence[int], labels: Sequence[int]) -> list[Piece]:
    """What tokens say. They are decoded from the first one on: some decoders write a word's space only behind another.
    A character whose bytes are parted stands with its last one."""
    trained = [label != _IGNORED for label in labels]
    ends = [i for i in range(1, len(ids)) if trained[i] != trained[i - 1]] + ([len(ids)] if len(ids) else [])
    whole, done, found = decode(list(ids)), 0, []
    for end in ends:
        so_far = whole if end == len(ids) else decode(list(ids[:end])).rstrip("\ufffd")
        found.append(Piece(whole[done : len(so_far)], trained[end - 1]))
        done = max(done, len(so_far))
    return [piece for piece in found if piece.text]


def renderer_of(output: Output, allowed: tuple[Path, ...]) -> Renderer:
    """The tokenizer that the rows were made with. Raises CuratecError: C0622 (they hold no tokens), C0627 (it is not
    here, or another one), and what loading it raises."""
    told: dict[str, Any] | None = output.manifest["render"]
    if told is None:
        help_ = 'name a tokenizer in the spec, `render "…"`, and compile again'
        raise CuratecError.of("C0622", "the rows of this output hold no tokens", help=help_, place=str(output.root))
    from curatec.runtime import rendering

    spec = Path(output.manifest["run"]["spec"])
    base = (spec.parent if spec.is_file() else Path()).resolve()
    try:
        found = rendering.load(told["tokenizer"], told["template"], base, project_of(base), allowed)
    except CuratecError as error:
        again = f"a folder is looked for where `{spec.name}` lies: call this from where it was compiled"
        raise CuratecError(replace(d, help=(*d.help, again)) for d in error.diagnostics) from None
    if found.digest != told["digest"]:
        raise CuratecError.of(
            "C0627",
            f"`{told['tokenizer']}` is not what the rows were made with: its digest is {found.digest[:12]}, "
            f"not {told['digest'][:12]}",
            help=(
                "the tokenizer or its chat template has changed since",
                "fetch the version of then, or compile again",
            ),
            place=str(output.root),
        )
    return found


def with_pieces(output: Output, rows: Sequence[dict[str, Any]], allowed: tuple[Path, ...]) -> list[dict[str, Any]]:
    """Those of some rows (as `show.row` gives them) that hold tokens, with "pieces". Raises CuratecError as above, and
    C0622 where none holds any."""
    renderer = renderer_of(output, allowed)
    held = [shown for shown in rows if "input_ids" in shown["row"]]
    if not held:
        sinks = ", ".join(f"`{sink}`" for sink in dict.fromkeys(shown["sink"] for shown in rows))
        help_ = "rows of `emit sft` do, in the formats `trl` and `openai`"
        raise CuratecError.of("C0622", f"the rows of {sinks} hold no tokens", help=help_, place=str(output.root))

    def decode(ids: list[int]) -> str:
        return str(renderer.tokenizer.decode(ids, skip_special_tokens=False))

    def found(values: dict[str, Any]) -> list[dict[str, Any]]:
        return [asdict(piece) for piece in pieces(decode, values["input_ids"], values["labels"])]

    return [shown | {"pieces": found(shown["row"])} for shown in held]
