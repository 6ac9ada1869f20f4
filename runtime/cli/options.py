"""Options that several commands share, and the values that they turn into."""

from __future__ import annotations

import re
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
engine_option = click.option(
    "--engine",
    type=click.Choice(["polars", "duckdb"]),
    default="polars",
    help="What runs the plan; the output is the same.",
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


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(i?)B?", re.IGNORECASE)
_LEAST = 64 * 10**6  # bytes: Python and its libraries alone hold more


def size(text: str | None) -> int | None:
    """`4GB`, `800 MB` or `1.5GiB` in bytes."""
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"`--memory {text}` is not a size: write 4GB, 800MB or 1.5GiB")
    number, unit, binary = found.groups()
    bytes_ = int(float(number) * (1024 if binary else 1000) ** " KMGT".index(unit.upper() or " "))
    if bytes_ < _LEAST:
        raise click.UsageError(f"`--memory {text}` is too little: give 64MB at least, such as 500MB or 1GB")
    return bytes_
