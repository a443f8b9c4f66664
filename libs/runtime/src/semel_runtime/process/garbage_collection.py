"""How a service process collects garbage: for throughput."""

import gc


def collect_garbage_seldom() -> None:
    """Keep the collector from walking the whole state again and again.

    Records and entities are immutable and hold no cycles; reference counts free them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
