"""Times, durations and places as people read them. No I/O."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiosemel import OpenTransaction


def visible(text: str) -> str:
    """Return a text with escapes for unprintable characters, but not for lines and tabs.

    A browser drops some control characters, and others turn the order of the letters around: two
    names would look alike.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    )


def time_text(timestamp_ms: int) -> str | None:
    """Return a time as people write it, in UTC; None for 0, which means none."""
    if timestamp_ms <= 0:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def duration_text(duration_ms: int) -> str:
    """Return a duration in the units that suit it."""
    seconds, milliseconds = divmod(duration_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {seconds} s"
    return f"{seconds}.{milliseconds // 100} s" if seconds else f"{milliseconds} ms"


def ago_text(age_ms: int | None) -> str | None:
    """Return how long ago something happened; None: it is not known."""
    return None if age_ms is None else f"{duration_text(age_ms)} ago"


def since_text(then_ms: int | None, now_ms: int) -> str | None:
    """Return how long ago a time was; None: it is not known. The clock of a client may be ahead."""
    return None if then_ms is None else ago_text(max(0, now_ms - then_ms))


def place(found: "OpenTransaction") -> str:
    """Name where a transaction is open."""
    return f"group {found.group_id}" if found.partition is None else str(found.partition)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 record``, ``2 records``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
