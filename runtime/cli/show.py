"""`curatec show`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from curatec.runtime.cli import options
from curatec.runtime.cli.console import coloured, say, say_json


@click.command("show")
@options.out_argument
@click.argument("name", metavar="[ID]", required=False)
@click.option("--sink", metavar="SINK", help="Only the row of this sink.")
@click.option("--tokens", "as_tokens", is_flag=True, help="The text that the tokens say, trained ones marked.")
@options.allow_option
@options.json_option
def command(
    out: Path, name: str | None, sink: str | None, as_tokens: bool, allowed: tuple[Path, ...], as_json: bool
) -> int:
    """Show the rows that ID has become, as a trainer reads them; trained text is marked.

    ID is the beginning of a run's id, an example id, or the record's own id; without it the first row is shown.
    Marks are colours on a terminal, and ⟦…⟧ elsewhere. What `chosen` and `rejected` add to the prompt is marked.
    With --tokens, rows of a spec that names a tokenizer (`render`) are shown as it reads them: `input_ids` decoded,
    those with a label marked. A tokenizer in a folder is looked for where the spec lies.

    JSON: {"rows": [{"sink", "file", "format", "exact", "made", "row"}], "diagnostics": []}; "row" has the columns of
    the file, and "trained" the spans in code points; "made" is [{"by", "label", "sink", "from"}], last first. With
    --tokens each also has "pieces": [{"text", "trained"}].
    """
    from curatec.runtime.answers.output import open_output
    from curatec.runtime.answers.show import brackets, examples, head, lines, row

    output = open_output(out)
    rows = [row(output, where, example) for where, example in examples(output, name, sink)]
    if as_tokens:
        from curatec.runtime.answers.tokens import with_pieces

        rows = with_pieces(output, rows, allowed)
    if as_json:
        say_json({"rows": rows, "diagnostics": []})
        return 0
    mark = _highlight if coloured(sys.stdout) else brackets
    for number, shown in enumerate(rows):
        if number:
            say()
        for line in (*head(shown), "", _marked(shown["pieces"], mark)) if as_tokens else lines(shown, mark):
            say(line)
    return 0


def _marked(pieces: list[dict[str, Any]], mark: Callable[[str], str]) -> str:
    return "".join(mark(piece["text"]) if piece["trained"] else piece["text"] for piece in pieces)


def _highlight(text: str) -> str:
    # Each line of its own: a pager and an indented next line would carry the colour on.
    return "\n".join(click.style(line, fg="black", bg="green") if line else line for line in text.split("\n"))
