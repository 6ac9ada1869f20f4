"""AST → text. What is printed is laid out like any other text, so the formatter has nothing to add.

Names are written in back-quotes first and lose them where the parser, in that very place, would take the bare word
for a name and not for a keyword: so the grammar alone says which words are keywords where.
"""

from __future__ import annotations

from collections.abc import Sequence

from curatec.dsl import ast
from curatec.dsl.grammar import grammar
from curatec.dsl.nodes import Node
from curatec.dsl.printing.declarations import declaration
from curatec.dsl.printing.expr import expr
from curatec.dsl.printing.layout import Layout
from curatec.dsl.printing.literals import PLAIN_NAME
from curatec.dsl.printing.shape import Read, reread
from curatec.dsl.printing.sheet import Sheet
from curatec.dsl.printing.steps import body_item

_TOGETHER = (ast.Param, ast.Import, ast.Use)
_STATEMENTS = (ast.Statement, ast.Stage, ast.Sink)


def print_file(file: ast.File) -> str:
    """`parse(print_file(file)).file == file` for all that the language can say; ValueError for the rest."""
    return _declarations(file.declarations)


def print_node(node: Node) -> str:
    """A declaration, a statement as it stands at the margin, or an expression on one line. No line end at the end."""
    if isinstance(node, ast.File):
        return print_file(node)
    if isinstance(node, _STATEMENTS):
        return _print_statement(node)
    try:
        rough = expr(node)
    except TypeError:
        return _declarations((node,)).removesuffix("\n")
    text, read = _bare(f"failure `f` {{ when {rough} }}")
    return _layout(text, read).sheet.flat(4, len(read.tokens) - 1)


def _declarations(nodes: Sequence[Node]) -> str:
    out: list[str] = []
    before: Node | None = None
    for node in nodes:
        if before is not None:
            together = type(node) is type(before) and isinstance(node, _TOGETHER)
            out.append("\n" if together else "\n\n")
        out.append(declaration(node))
        before = node
    text, read = _bare("".join(out))
    return _layout(text, read).file(read.declarations)


def _print_statement(node: Node) -> str:
    """Read where it may stand, laid out as if nothing stood around it."""
    rough = body_item(node, 0)
    if isinstance(node, ast.SETTINGS):
        text, read = _bare(f"strategy `s` {{ emit `e` {{\n{rough}\n}} }}")
    else:
        text, read = _bare(f"strategy `s` {{\n{rough}\n}}")
    layout = _layout(text, read)
    block = read.declarations[0]
    if isinstance(node, ast.SETTINGS):
        block = next(layout.items(block))[0]
    return layout.item(next(layout.items(block)), 0)


def _layout(text: str, read: Read) -> Layout:
    return Layout(Sheet(text, read.tokens, read.comments, read.branches))


def _bare(text: str) -> tuple[str, Read]:
    """The text without the back-quotes that it does not need, and what is read in it."""
    read = _read(text)
    tables = grammar()
    out: list[str] = []
    end = 0
    for token, state in zip(read.tokens, read.states, strict=True):
        bare = str(token)[1:-1]
        if token.type != "QUOTED_NAME" or not PLAIN_NAME.fullmatch(bare):
            continue
        if tables.keywords.get(bare) in tables.states[state]:
            continue
        out += [text[end : token.start_pos], bare]
        end = token.end_pos or 0
    bared = "".join([*out, text[end:]])
    return bared, _read(bared)


def _read(text: str) -> Read:
    read = reread(text)
    if read is None:
        raise ValueError(f"the language cannot say this:\n{text}")
    return read
