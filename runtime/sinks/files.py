"""Rows → `{split}.parquet` and `{split}.jsonl`, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import polars as pl
import pyarrow.parquet as pq

from curatec.runtime.sinks.columns import Col, arrow_schema, as_arrow, frame, has_lines, json_line, lines

ROW_GROUP = 512
LINE = "line"  # the column of JSON lines, where they cannot be told from the others
_GROUP_BYTES = 32 * 2**20  # as JSON lines: rows of many tokens make shorter groups
_COMPRESSION = ("zstd", 3)
_AT_ONCE = 2 << 20  # bytes of lines that are made and written: while the processor's cache holds them, that is cheap


class SplitFile:
    """One split: where a row group ends depends on its rows alone, so that bytes do not depend on how rows arrive.
    `pool` compresses row groups while lines are written, one at a time."""

    def __init__(
        self, folder: Path, stem: str, columns: tuple[Col, ...], shown: tuple[Col, ...], pool: ThreadPoolExecutor
    ) -> None:
        self._columns = columns
        self._shown = shown
        self._pool = pool
        self._rows: list[pl.DataFrame] = []  # of the row group to be
        self._height = 0
        self._held = 0
        self._writing: Future[None] | None = None
        self._lines: BinaryIO = (folder / f"{stem}.jsonl").open("wb")
        codec, level = _COMPRESSION
        self._parquet = pq.ParquetWriter(
            folder / f"{stem}.parquet", arrow_schema(columns), compression=codec, compression_level=level
        )
        self.names = (f"{stem}.parquet", f"{stem}.jsonl")

    def add(self, rows: pl.DataFrame) -> None:
        """Rows in their order, perhaps with a LINE."""
        start = 0
        for end, size in enumerate(self._write_lines(rows), start=1):
            self._height += 1
            self._held += size
            if self._height == ROW_GROUP or self._held >= _GROUP_BYTES:
                self._rows.append(rows[start:end])
                self._flush()
                start = end
        self._rows.append(rows[start:])

    def _write_lines(self, rows: pl.DataFrame) -> Iterator[int]:
        """The length of each line in bytes."""
        if rows.is_empty():
            return
        for some in rows.iter_slices(max(1, _AT_ONCE * rows.height // int(rows.estimated_size()))):
            told = some[LINE] if LINE in rows.columns else lines(self._shown, some)
            sizes = told.str.len_bytes().to_list()
            # In Arrow's older layout the texts stand one behind the other.
            _, _, texts = told.to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()
            self._lines.write(memoryview(texts)[: sum(sizes)])
            yield from sizes

    def _flush(self) -> None:
        if self._writing is not None:
            self._writing.result()
        self._writing = self._pool.submit(self._write, pl.concat(self._rows))
        self._rows = []
        self._height = self._held = 0

    def _write(self, rows: pl.DataFrame) -> None:
        self._parquet.write_table(as_arrow(self._columns, rows), row_group_size=ROW_GROUP)

    def close(self) -> None:
        """Raises what writing raised."""
        try:
            if self._height:
                self._flush()
            if self._writing is not None:
                self._writing.result()
        finally:
            self._lines.close()
            self._parquet.close()


class Files:
    """All splits of a sink. `train` (or what `always` names) is written even when empty, others if they have a row.
    `shown` are the columns of JSON lines, where they are not all."""

    def __init__(
        self, folder: Path, columns: tuple[Col, ...], always: str = "train", shown: tuple[Col, ...] | None = None
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._shown = columns if shown is None else shown
        self._pool = ThreadPoolExecutor(1)
        self._splits: dict[str, SplitFile] = {}
        self._split(always)

    def _split(self, stem: str) -> SplitFile:
        if stem not in self._splits:
            self._splits[stem] = SplitFile(self._folder, stem, self._columns, self._shown, self._pool)
        return self._splits[stem]

    def add(self, rows: pl.DataFrame, stem: str | None = None) -> None:
        """Rows in their order: the columns, perhaps more, and a LINE unless the shown ones have lines. Each goes to the
        file of its `split`, or all to that of `stem`."""
        if stem is not None:
            self._split(stem).add(rows)
            return
        for (split,), own in rows.group_by("split", maintain_order=True):
            self._split(str(split)).add(own)

    def add_rows(self, rows: Iterable[dict[str, Any]], stem: str | None = None) -> None:
        """The same for rows one by one."""
        given = iter(rows)
        while some := list(islice(given, ROW_GROUP)):
            self.add(told(self._columns, self._shown, some), stem)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for stem in sorted(self._splits) for name in self._splits[stem].names)

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:  # each is closed, whatever another raises
            stack.enter_context(self._pool)
            for split in self._splits.values():
                stack.callback(split.close)


def told(columns: tuple[Col, ...], shown: tuple[Col, ...], rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as `Files.add` takes them."""
    made = frame(columns, rows)
    if has_lines(shown):
        return made
    return made.with_columns(pl.Series(LINE, [json_line(shown, row).decode() for row in rows], dtype=pl.String))
