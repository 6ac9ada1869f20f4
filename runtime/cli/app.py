"""The group of commands. A command's module is imported when it is called, and help costs no data library."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from importlib import import_module

import click

from curatec.runtime.cli.guard import guarded, prepare

# Command → its module here, and its line in `curatec --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "compile": ("compile", "Make the training data that a spec asks for."),
    "check": ("check", "Find all errors of a spec without reading any data."),
    "fmt": ("fmt", "Lay out specs in the one style."),
    "plan": ("plan", "Say what a compile would do and what has changed."),
    "explain": ("explain", "Explain a code, or how a spec will be run."),
    "why": ("why", "Say why a run or turn was kept, dropped or edited."),
    "show": ("show", "Show a row as the trainer sees it."),
    "verify": ("verify", "Check an output: digests, counts, sums, lineage."),
    "inspect": ("inspect", "Say what is in raw files: formats, runs, defects."),
    "init": ("init", "Write a first spec, fitted to your runs."),
    "convert": ("convert", "Write runs of any format in another one, without a spec."),
    "try": ("attempt", "Compile a few runs and show every step's count."),
}


class Commands(click.Group):
    """Loads a command when it is asked for; lists them without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"curatec.runtime.cli.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, 1)
            advice = f"did you mean `{close[0]}`?" if close else "`curatec --help` lists them."
            raise click.UsageError(f"there is no command `{name}`; {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"curatec {version('curatec')}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 clean, 1 the spec or the data is wrong, 2 wrong usage, 3 a budget ended it, 130 interrupted.",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def group() -> None:
    """Compile raw agent trajectories into training data, and say why each run was kept or dropped."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. Nothing is raised."""
    if "_CURATEC_COMPLETE" in os.environ:
        group.main(list(arguments), prog_name="curatec")
    # A command lives for seconds and makes few cycles; looking for them time and again costs a tenth of it.
    gc.set_threshold(200_000, 50, 100)
    prepare()
    return guarded(lambda: _invoke(list(arguments)), as_json="--json" in arguments)


def _invoke(arguments: list[str]) -> int:
    # Not `group.main`: it would answer a closed pipe and Ctrl-C itself.
    with group.make_context("curatec", arguments) as ctx:
        code = group.invoke(ctx)
        return code if isinstance(code, int) else 0
