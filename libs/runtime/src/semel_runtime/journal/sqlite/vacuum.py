"""Giving space back to the file system, a bounded step at a time.

Free pages are used again by later writes; only what is free beyond a slack leaves the file. Each
page that leaves may cost the move of another one, so a share of the file stays free for what comes.
"""

from semel_runtime.journal.sqlite.connections import Writer

_SLACK_BYTES = 4 << 20
_SLACK_SHARE = 8
"""One page in so many may be free."""
_STEP_BYTES = 1 << 20
"""What one write may be held up by: about a millisecond or two."""
_PAGES = """
SELECT freelist_count, page_count, page_size
FROM pragma_freelist_count, pragma_page_count, pragma_page_size
"""


async def give_back(writer: Writer) -> bool:
    """Shorten the file by one step; answer whether there is more to give back."""
    free, pages, page_bytes = map(int, (await writer.execute(_PAGES))[0])
    surplus = free - max(_SLACK_BYTES // page_bytes, pages // _SLACK_SHARE)
    if surplus <= 0:
        return False
    step = _STEP_BYTES // page_bytes
    await writer.execute_script(f"PRAGMA incremental_vacuum({min(surplus, step)})")
    return surplus > step
