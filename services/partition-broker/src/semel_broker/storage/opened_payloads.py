"""Payloads opened by the broker: for plain records, searches by time, counts and compaction.

A payload that may be large is opened in a thread, one at a time: other callers go on, and memory
holds one opened payload however many calls ask for one. A small payload is opened at once.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from semel_broker.storage.stored_batches import read_header
from semel_common.errors import CorruptMessageError, InvalidRequestError, SemelError
from semel_common.ids import TopicPartition
from semel_common.record_batches.compression import declared_size
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.process.worker_threads import Offload

T = TypeVar("T")

INLINE_MAX_BYTES = 64 << 10
"""A payload that opens to no more is opened at once: to hand it to a thread would take longer."""


def opens_to(stored: StoredBatch) -> int:
    """Return the most bytes that a payload can open to, by its own declaration.

    0: it is refused before any of it is decompressed.
    """
    try:
        size_bytes = declared_size(stored.payload, read_header(stored).codec)
    except CorruptMessageError:
        return 0
    if size_bytes is None:
        return OPENED_MAX_BYTES
    return size_bytes if size_bytes <= OPENED_MAX_BYTES else 0


class PayloadOpener:
    """Opens the payloads of one broker."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._one = asyncio.Semaphore(1)

    async def run(self, stored: StoredBatch, work: Callable[[], T]) -> T:
        """Return what ``work`` returns; it opens the payload of this batch and no other."""
        if opens_to(stored) <= INLINE_MAX_BYTES:
            return work()
        async with self._one:
            return await self._offload(work)


def named(
    error: SemelError, stored: StoredBatch, partition: TopicPartition, topic: str
) -> SemelError:
    """Return the error of a batch that cannot be opened, with its place and the way past it."""
    end = stored.base_offset + stored.record_count
    kind = type(error) if isinstance(error, InvalidRequestError) else CorruptMessageError
    return kind(
        f"{topic or partition.topic_id}-{partition.partition}: {error.message};"
        f" go on at offset {end} to skip the batch",
        **error.details,
        topic=topic,
        topic_id=partition.topic_id,
        partition=partition.partition,
        offset=stored.base_offset,
        next_offset=end,
    )
