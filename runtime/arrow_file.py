"""Arrow files of the cache and of a run, mapped: nothing is copied, and no column is looked at that nobody asks for."""

from __future__ import annotations

import errno
from collections.abc import Collection
from pathlib import Path

import polars as pl


def read(path: Path, columns: Collection[str] | None = None) -> pl.DataFrame:
    """All columns of a file that `write` made, or some of them in the order of the file. Raises OSError.

    pyarrow maps it: polars' own reader looks through every text, in twenty times the time.
    """
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    except pa.ArrowException as error:
        if isinstance(error, OSError):
            raise
        raise OSError(errno.EIO, f"damaged Arrow file: {error}", str(path)) from error
    if columns is not None:
        table = table.select([name for name in table.column_names if name in columns])
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def write(frame: pl.DataFrame, path: Path) -> None:
    """Uncompressed. Raises OSError."""
    try:
        frame.write_ipc(path, compression="uncompressed")
    except pl.exceptions.PolarsError as error:  # how polars reports a full disk
        raise OSError(errno.EIO, str(error).rpartition(": ")[2], str(path)) from error
