"""Bringing an empty machine to its state: the snapshot, then the records after it."""

import time
from typing import TypeVar

import structlog

from semel_runtime.journal.base import Claim, Journal
from semel_runtime.machine import Machine, Serde
from semel_runtime.runner.snapshots import SnapshotPolicy

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
    """Replay a journal that is claimed; tell the policy what was found."""
    started = time.perf_counter()
    records = size_bytes = 0
    async for piece in journal.read_snapshot():
        for offset, data in piece:
            machine.replay(offset, serde.decode(data))
            size_bytes += len(data)
        records += len(piece)
    policy.took(records=records, size_bytes=size_bytes)
    async for piece in journal.read(claim.first_offset, max_bytes=read_bytes):
        for offset, data in piece:
            machine.replay(offset, serde.decode(data))
        policy.add(records=len(piece), size_bytes=sum(len(data) for _, data in piece))
    log.info(
        "journal loaded",
        claim_epoch=claim.epoch,
        snapshot_records=records,
        first_offset=claim.first_offset,
        next_offset=claim.next_offset,
        seconds=round(time.perf_counter() - started, 3),
    )
