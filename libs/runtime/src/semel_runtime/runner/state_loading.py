"""Bringing an empty machine to its state: the snapshot, then the records after it."""

import time
from typing import TypeVar

import structlog

from semel_runtime.journal.contract import Claim, Journal
from semel_runtime.journal.journal_errors import JournalNewerError
from semel_runtime.machine import Machine, Serde, UnknownRecordError
from semel_runtime.runner.observers import tell
from semel_runtime.runner.snapshot_schedule import SnapshotPolicy

R = TypeVar("R")

log = structlog.get_logger(__name__)


async def load(
    journal: Journal,
    machine: Machine[R],
    serde: Serde[R],
    *,
    claim: Claim,
    policy: SnapshotPolicy,
    read_bytes: int,
) -> None:
    """Replay a journal that is claimed; tell the policy what was found.

    Raises what reading raises, and JournalNewerError.
    """
    started = time.perf_counter()
    records = size_bytes = 0
    async for piece in journal.read_snapshot():
        for offset, data in piece:
            machine.replay(offset, _decoded(serde, offset, data))
            size_bytes += len(data)
        records += len(piece)
    policy.took(records=records, size_bytes=size_bytes)
    async for piece in journal.read(claim.first_offset, max_bytes=read_bytes):
        for offset, data in piece:
            machine.replay(offset, _decoded(serde, offset, data))
        policy.add(records=len(piece), size_bytes=sum(len(data) for _, data in piece))
    tell(
        log.info,
        "journal loaded",
        claim_epoch=claim.epoch,
        snapshot_records=records,
        first_offset=claim.first_offset,
        next_offset=claim.next_offset,
        seconds=round(time.perf_counter() - started, 3),
    )


def _decoded(serde: Serde[R], offset: int, data: bytes) -> R:
    try:
        return serde.decode(data)
    except UnknownRecordError as error:
        raise JournalNewerError(f"a record at offset {offset}") from error
