"""Giving space back to the file system, a bounded step at a time.

Free pages are used again by later writes; only what is free beyond a slack leaves the file.
"""

from semel_runtime.journal.sqlite.connections import Writer

_SLACK_PAGES = 1_024
_STEP_PAGES = 512
"""Two MB: what one write may be held up by, about a millisecond or two."""


async def give_back(writer: Writer) -> bool:
    """Shorten the file by one step; answer whether there is more to give back."""
    rows = await writer.execute("PRAGMA freelist_count")
    surplus = int(rows[0][0]) - _SLACK_PAGES
    if surplus <= 0:
        return False
    await writer.execute_script(f"PRAGMA incremental_vacuum({min(surplus, _STEP_PAGES)})")
    return surplus > _STEP_PAGES
