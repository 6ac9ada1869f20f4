"""Options that several commands share, and the values that they turn into."""

from __future__ import annotations

from pathlib import Path

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strategy_option = click.option("--strategy", metavar="NAME", help="The strategy, where the spec has several.")
params_option = click.option(
    "-D", "given", metavar="NAME=VALUE", multiple=True, help="Set a parameter; may be repeated."
)
allow_option = click.option(
    "--allow-path",
    "allowed",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder outside the project that may be read.",
)
spec_argument = click.argument("spec", metavar="SPEC")
out_argument = click.argument("out", metavar="OUT", type=click.Path(path_type=Path))


def params(given: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping; the same name twice is a mistake."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"`-D {text}` is not NAME=VALUE")
        if name in found:
            raise click.UsageError(f"`-D {name}` is given twice")
        found[name] = value
    return found
