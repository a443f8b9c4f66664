"""Giving space back to the file system, a bounded step at a time.

Free pages are used again by later writes; only what is free beyond a slack leaves the file. Each
page that leaves may cost the move of another one, so a share of the file stays free for what comes.
"""

from semel_runtime.journal.sqlite.connections import Writer

_SLACK_PAGES = 1_024
_SLACK_SHARE = 8
"""One page in so many may be free."""
_STEP_PAGES = 256
"""One MB: what one write may be held up by, about a millisecond or two."""
_PAGES = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"


async def give_back(writer: Writer) -> bool:
    """Shorten the file by one step; answer whether there is more to give back."""
    free, pages = (await writer.execute(_PAGES))[0]
    surplus = int(free) - max(_SLACK_PAGES, int(pages) // _SLACK_SHARE)
    if surplus <= 0:
        return False
    await writer.execute_script(f"PRAGMA incremental_vacuum({min(surplus, _STEP_PAGES)})")
    return surplus > _STEP_PAGES
