"""Tokens and comments → text: only white space is chosen here.

One statement a line, two blanks a block, nothing aligned. A block that its author wrote on one line stays there where
it fits; all else follows from the tokens, which is why laying out twice is laying out once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lark import Token

from curatec.dsl.printing.breaking import broken, head
from curatec.dsl.printing.shape import Branch, first_of, shape
from curatec.dsl.printing.sheet import STEP, Sheet, fits

# Rules whose braces hold settings or statements. Braces of other rules hold the parts of one value.
BLOCKS = frozenset(
    (
        "source", "table", "tools", "tool_override", "model", "test_set", "workflow", "synthesis", "failure",
        "recipe", "recipe_sft", "recipe_grpo", "benchmark", "agent", "evolve", "strategy", "stage", "sink",
    )
)  # fmt: skip


def lay_out(text: str, tokens: Sequence[Token], comments: Sequence[Token]) -> str:
    """The text of a file that parses, anew."""
    declarations, branches = shape(token.type for token in tokens)
    return Layout(Sheet(text, tokens, comments, branches)).file(declarations)


class Layout:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet

    def file(self, declarations: Sequence[Branch]) -> str:
        """Declarations that span lines stand apart; short ones of one kind may stand together."""
        out: list[str] = []
        before: tuple[str, bool] | None = None
        for declaration in declarations:
            text = self.item((declaration,), 0)
            now = (kind(declaration), "\n" in text)
            apart = before is not None and (now != before or now[1])
            out += [self._gap(declaration.start, 0, first=before is None, apart=apart), text]
            before = now
        out.append(self._gap(len(self.sheet), 0, first=before is None, item=False))
        whole = "".join(out).lstrip("\n")
        return whole + "\n" if whole else ""

    def item(self, parts: Sequence[Branch], indent: int) -> str:
        """A declaration, a statement or a setting, from its first token on, at a column of `indent`."""
        if parts[0].name in BLOCKS:
            return self._block(parts[0], indent)
        start, end = parts[0].start, parts[-1].end
        if self.sheet.quiet(start, end):
            text = self.sheet.flat(start, end)
            if fits(text, indent):
                return text
        return broken(parts, self.sheet, indent)

    def _block(self, block: Branch, indent: int) -> str:
        sheet = self.sheet
        opening, closing = self._braces(block)
        if sheet.quiet(block.start, block.end) and sheet.one_line(opening, closing):
            text = sheet.flat(block.start, block.end)
            if fits(text, indent) or closing == opening + 1:
                return text
        out = [head(block.start, opening + 1, sheet, indent)]
        first = True
        for parts in self.items(block):
            out += [self._gap(parts[0].start, indent + STEP, first=first), self.item(parts, indent + STEP)]
            first = False
        if first and sheet.quiet(opening, block.end):
            return out[0] + "}"
        out += [self._gap(closing, indent + STEP, first=first, item=False), "\n", " " * indent, "}"]
        return "".join(out)

    def _braces(self, block: Branch) -> tuple[int, int]:
        types = self.sheet.types
        return next(kid for kid in block.kids if kid.__class__ is int and types[kid] == "LBRACE"), block.end - 1

    def items(self, block: Branch) -> Iterator[list[Branch]]:
        """What stands in a block. A `context` right after a `decompose` is part of that statement."""
        opening, closing = self._braces(block)
        if block.name == "failure":
            yield [Branch("when", [kid for kid in block.kids if opening < first_of(kid) < closing])]
            return
        parts: list[Branch] = []
        for branch in block.branches():
            if branch.start < opening:
                continue
            if parts and self._continues(parts, branch):
                parts.append(branch)
                continue
            if parts:
                yield parts
            parts = [branch]
        if parts:
            yield parts

    def _continues(self, parts: Sequence[Branch], branch: Branch) -> bool:
        types = self.sheet.types
        verb = parts[0].start + (types[parts[0].start] == "LABEL")
        return len(parts) == 1 and types[branch.start] == "CONTEXT" and types[verb] == "DECOMPOSE"

    # ---- what stands between items ----

    def _gap(self, gap: int, indent: int, *, first: bool = False, apart: bool = False, item: bool = True) -> str:
        """From the end of what stands before to an item, or to the last comment where no item follows.

        Comments stay where they stood, behind something or on a line of their own. One empty line may be kept, but
        none before what is `first`; where items stand `apart`, it may be on either side of the comments.
        """
        comments = self.sheet.comments.get(gap, [])
        lines = [comment.text for comment in comments if not comment.trailing]
        blanks = [comment.lines > 1 for comment in comments if not comment.trailing]
        if item:
            lines.append("")
            blanks.append(self.sheet.lines_before(gap) > 1)
        if blanks and first:
            blanks[0] = False
        elif blanks and apart and not any(blanks):
            blanks[0] = True
        out = ["  " + comment.text for comment in comments if comment.trailing]
        for line, blank in zip(lines, blanks, strict=True):
            out += ["\n\n" if blank else "\n", " " * indent, line]
        return "".join(out)


def kind(declaration: Branch) -> str:
    """`param` with a range and with choices are two rules and one kind."""
    return declaration.name.partition("_")[0]
