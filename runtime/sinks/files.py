"""Rows → `{split}.parquet` and `{split}.jsonl`, in the order in which they come."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from curatec.runtime.sinks.columns import Col, arrow_schema, json_line, table

ROW_GROUP = 512
_GROUP_BYTES = 32 * 2**20  # as JSON lines: rows of many tokens make shorter groups
_COMPRESSION = ("zstd", 3)


class SplitFile:
    """One split: where a row group ends depends on its rows alone, so that bytes do not depend on how rows arrive."""

    def __init__(self, folder: Path, stem: str, columns: tuple[Col, ...], lines: tuple[Col, ...]) -> None:
        self._columns = columns
        self._shown = lines
        self._rows: list[dict[str, Any]] = []
        self._held = 0
        self._lines: BinaryIO = (folder / f"{stem}.jsonl").open("wb")
        codec, level = _COMPRESSION
        self._parquet = pq.ParquetWriter(
            folder / f"{stem}.parquet", arrow_schema(columns), compression=codec, compression_level=level
        )
        self.names = (f"{stem}.parquet", f"{stem}.jsonl")

    def add(self, row: dict[str, Any]) -> None:
        self._held += self._lines.write(json_line(self._shown, row))
        self._rows.append(row)
        if len(self._rows) == ROW_GROUP or self._held >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._parquet.write_table(table(self._columns, self._rows), row_group_size=ROW_GROUP)
        self._rows.clear()
        self._held = 0

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._lines.close()
        self._parquet.close()


class Files:
    """All splits of a sink. `train` (or what `always` names) is written even when empty, others if they have a row.
    `lines` are the columns of JSON lines, where they are not all."""

    def __init__(
        self, folder: Path, columns: tuple[Col, ...], always: str = "train", lines: tuple[Col, ...] | None = None
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._lines = columns if lines is None else lines
        self._splits = {always: SplitFile(folder, always, columns, self._lines)}

    def add(self, stem: str, row: dict[str, Any]) -> None:
        if stem not in self._splits:
            self._splits[stem] = SplitFile(self._folder, stem, self._columns, self._lines)
        self._splits[stem].add(row)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for stem in sorted(self._splits) for name in self._splits[stem].names)

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for split in self._splits.values():
            split.close()
