"""Giving space back to the file system, a bounded step at a time.

Free pages are used again by later writes; only what is free beyond a slack leaves the file. Each
page that leaves may cost the move of another one, so a share of the file stays free for what comes.

For each page that leaves, SQLite searches its list of free pages. Where the file's end is free and
became so last, that takes a microsecond; with much that is free elsewhere, a millisecond. So steps
are bounded in time, and nothing leaves in the midst of a deletion, which may come to the end yet.

The file becomes shorter only when the write-ahead log is written into it. On a full disk no append
would ever do that, so the last step does.
"""

import time
from collections.abc import Callable

from semel_runtime.journal.sqlite.connections import Writer

_SLACK_BYTES = 4 << 20
_SLACK_SHARE = 8
"""One page in so many may be free."""
_STEP_BYTES_MAX = 1 << 20
_STEP_SECONDS = 0.002
"""What a write should be held up by at most: a step takes a page more than the one before, or, if
that one took longer than this, half as many."""
_PAGES = """
SELECT freelist_count, page_count, page_size
FROM pragma_freelist_count, pragma_page_count, pragma_page_size
"""


class Vacuum:
    """Shortens a journal file by pages at its end."""

    def __init__(self, writer: Writer, clock: Callable[[], float] = time.perf_counter) -> None:
        self._writer = writer
        self._clock = clock
        self._step_pages = 1
        self.is_held = False
        """Whether more is about to be deleted."""
        self._is_in_log = False
        """Whether pages have left that the file still has, because the log is not written yet."""

    def hold(self, *, more_comes: bool) -> None:
        """Give nothing back while more is about to be deleted."""
        self.is_held = more_comes

    async def give_back(self) -> bool:
        """Shorten the file by one step; answer whether there is more to give back."""
        free, pages, page_bytes = map(int, (await self._writer.execute(_PAGES))[0])
        surplus = free - max(_SLACK_BYTES // page_bytes, pages // _SLACK_SHARE)
        if self.is_held:
            return False
        if surplus <= 0:
            self._is_in_log = self._is_in_log and not await self._writer.empty_log()
            return False
        step = min(surplus, self._step_pages, _STEP_BYTES_MAX // page_bytes)
        started = self._clock()
        await self._writer.execute_steps_unsynced(f"PRAGMA incremental_vacuum({step})")
        in_time = self._clock() - started <= _STEP_SECONDS
        self._step_pages = step + 1 if in_time else max(1, step // 2)
        self._is_in_log = True
        return True
