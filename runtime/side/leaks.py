"""Whether texts leak an item of a test set: word for word, or by N words in a row.

**Words.** Both sides are brought to words first: lower case as everywhere (`compiler/text.py`), everything that is no
letter, mark or digit becomes a space, white space collapses. A Han letter is a word of its own, since no space parts
Chinese.

**Rules**, the first that holds is the reason:

- `test_id`: the item's id is the `task_id` or the `task` of the run (`7` is that task of every domain, `retail/7` of
  one);
- `test_text`: all words of the item, in a row, inside one text that the user or the agent wrote;
- `test_ngram`: N words of the item in a row (13 unless the spec says otherwise), inside one text of the run, also one
  that a tool gave back or a call handed over. An item of fewer than N words is found by the rule above only.

**How.** Every run of N words of the set is hashed once. A pass over the texts hashes theirs the same way, and what
agrees is compared word for word: a collision of hashes finds nothing. Texts are passed in bounded pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from curatec.compiler.text import lower
from curatec.runtime.side.sealed import Sealed

EVIDENCE = 200  # code points that the ledger keeps of one
_PIECE = 16 * 2**20  # bytes of text whose words are in memory at once
_FACTOR = 0x9E3779B97F4A7C15  # odd, of a polynomial over the hashes of words, modulo 2**64

_TEXT, _NGRAM = 1, 2
_REASONS = {_TEXT: "test_text", _NGRAM: "test_ngram"}
TEXTS = pl.Schema({"row": pl.UInt32, "text": pl.String, "said": pl.Boolean})
"""What is searched: texts of numbered rows; `said`: by the user or the agent."""


@dataclass(frozen=True, slots=True)
class Leak:
    """`evidence` is the item's id, where it has one, and the words that are shared, at most EVIDENCE code points."""

    reason: str
    evidence: str


def words(e: pl.Expr) -> pl.Expr:
    """The words of a text with one space between them: String -> String."""
    return lower(e).str.replace_all(r"(\p{Han})", " ${1} ").str.replace_all(r"[^\pL\pM\pN]+", " ").str.strip_chars(" ")


@dataclass(frozen=True)
class Finder:
    """A test set, ready to be looked for.

    `whole`: by number of words, the hash of one run of words of an item (its rarest) → the item. `grams`: the hash of
    each run of `ngram` words → the first item that has it, and where.
    """

    names: list[str | None]
    items: list[str]
    ngram: int
    whole: dict[int, pl.DataFrame]
    grams: pl.DataFrame

    @classmethod
    def of(cls, sealed: Sealed, ngram: int) -> Finder:
        texts = sealed.items.drop_nulls("text").select("id", text=words(pl.col("text"))).filter(pl.col("text") != "")
        texts = texts.unique().sort("id", "text", nulls_last=True)
        found = _Words.of(texts["text"])
        ngram = min(ngram, found.frame.height + 1)  # more than any item has: no number is too large for the engine
        sizes = texts["text"].str.count_matches(" ") + 1
        whole = {
            size: found.runs(size).join(_numbered(sizes == size), on="at", how="semi").select("hash", item="at")
            for size in sorted(sizes.filter(sizes < ngram).unique())
        }
        grams = found.runs(ngram).select("hash", "place", item="at")
        if grams.height:
            whole[ngram] = (
                grams.with_columns(often=pl.len().over("hash")).sort("often", "place").unique("item", keep="first")
            ).select("hash", "item")
        first = grams.sort("item", "place").unique("hash", keep="first")
        return cls(texts["id"].to_list(), texts["text"].to_list(), ngram, whole, first)

    def find(self, texts: pl.DataFrame) -> dict[int, Leak]:
        """What each row leaks, if anything. `texts` has the columns of TEXTS, each row's in any order."""
        best: dict[int, tuple[int, int, int]] = {}
        for piece in _pieces(texts):
            for row, hit in self._hits(piece):
                best[row] = min(hit, best.get(row, hit))
        return {row: self._leak(*hit) for row, hit in sorted(best.items())}

    def _leak(self, rule: int, item: int, place: int) -> Leak:
        told = self.items[item] if rule == _TEXT else " ".join(self._gram(item, place))
        name = self.names[item]
        return Leak(_REASONS[rule], short(told if name is None else f"{name}: {told}"))

    def _gram(self, item: int, place: int) -> list[str]:
        return self.items[item].split(" ")[place : place + self.ngram]

    def _hits(self, piece: pl.DataFrame) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """For each row its first leak by (rule, item, place in the item), verified on the words."""
        found = _Words.of(piece["text"])
        whole = [found.runs(size).join(wanted, on="hash") for size, wanted in self.whole.items()]
        grams = found.runs(self.ngram).select("at", "hash").join(self.grams, on="hash")
        maybe = [
            *(hits.select("at", "item", rule=pl.lit(_TEXT), place=pl.lit(0, dtype=pl.UInt32)) for hits in whole),
            grams.select("at", "item", rule=pl.lit(_NGRAM), place="place"),
        ]
        hits = pl.concat(maybe).unique()
        about = piece.select("row", "said", "text").with_row_index("at")
        hits = hits.join(about, on="at").filter((pl.col("rule") == _NGRAM) | pl.col("said"))
        done: set[int] = set()
        for row, rule, item, place, text in (
            hits.sort("row", "rule", "item", "place").select("row", "rule", "item", "place", "text").iter_rows()
        ):
            if row in done:
                continue
            told = self.items[item] if rule == _TEXT else " ".join(self._gram(item, place))
            if f" {told} " in f" {text} ":
                done.add(row)
                yield row, (rule, item, place)


@dataclass(frozen=True)
class _Words:
    """The words of many texts one after the other: `at` numbers the text, `place` the word in it."""

    frame: pl.DataFrame

    @classmethod
    def of(cls, texts: pl.Series) -> _Words:
        """Of texts that `words` made."""
        split = pl.DataFrame({"text": texts}).with_row_index("at").filter(pl.col("text") != "")
        split = split.select("at", word=pl.col("text").str.split(" "))
        split = split.with_columns(place=pl.int_ranges(pl.col("word").list.len(), dtype=pl.UInt32))
        flat = split.explode("word", "place", empty_as_null=False, keep_nulls=False)
        return cls(flat.select("at", "place", hash=pl.col("word").hash()))

    def runs(self, size: int) -> pl.DataFrame:
        """Every run of `size` words inside one text: `at`, `place` of its first word, `hash`."""
        inside = pl.col("at") == pl.col("at").shift(1 - size)
        return self.frame.select("at", "place", hash=_rolled(pl.col("hash"), size), inside=inside).filter("inside")


def _rolled(hashes: pl.Expr, size: int) -> pl.Expr:
    """Σ hash[i + j] · FACTOR**j for j < size, by doubling: ever longer runs of 1, 2, 4 … are put together."""
    run, length = hashes, 1
    whole: pl.Expr | None = None
    covered = 0
    rest = size
    while rest:
        if rest & 1:
            whole = run if whole is None else whole + _shifted(run, covered)
            covered += length
        run, length = run + _shifted(run, length), 2 * length
        rest >>= 1
    assert whole is not None
    return whole


def _shifted(run: pl.Expr, by: int) -> pl.Expr:
    return run.shift(-by) * pl.lit(pow(_FACTOR, by, 2**64), dtype=pl.UInt64)


def _numbered(mask: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"at": mask.arg_true()})


def _pieces(texts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The texts as words, in pieces of bounded size; empty and null ones are left out."""
    texts = texts.drop_nulls("text")
    sizes = texts["text"].str.len_bytes().cast(pl.Int64)
    for _, piece in texts.with_columns(piece=sizes.cum_sum() // _PIECE).group_by("piece", maintain_order=True):
        yield piece.select("row", "said", text=words(pl.col("text")))


def short(text: str) -> str:
    return text if len(text) <= EVIDENCE else text[: EVIDENCE - 1] + "…"
