"""Times in specs: ISO 8601 texts beside `started_at`."""

from __future__ import annotations

from datetime import UTC, datetime


def read_time(text: str) -> str | None:
    """The instant in UTC as `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`, or None. Without an offset it is UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.isoformat(timespec="microseconds")
