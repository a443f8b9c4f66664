"""`semel recover coordinator`: makes its older or empty volume fit to serve."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from semel_common.ids import producer_id_counters_start
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.machine import ControllerLimits, ControllerMachine, InstanceKey
from semel_coordinator.controller.machine.records import CONTROLLER_RECORDS
from semel_coordinator.coordinator_machine import CoordinatorMachine, CoordinatorRecord
from semel_coordinator.record_serde import CoordinatorSerde
from semel_coordinator.transactions.machine import TransactionLimits
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result
from semel_runtime.recovery import Recovered, Recovery, recover_volume
from semel_runtime.runner import Runner

_RECORDS_PER_COMMIT = 10_000
_COMMIT_BYTES = 1 << 20
"""The records of one commit, except the last one."""


async def recover(
    folder: Path,
    recovery: Recovery,
    image: ClusterImage,
    marks: Mapping[InstanceKey, JournalMark] | None = None,
) -> Recovered:
    """Raise all that is given out; on coordinator 0, take over the newest metadata besides.

    ``marks``: how far the journals of the other instances go, for coordinator 0. Raises what
    ``recover_volume`` and ``ClusterCopy.update`` raise.
    """
    machine = CoordinatorMachine(
        instance_id=recovery.instance_id,
        controller_limits=ControllerLimits(),
        transaction_limits=TransactionLimits(),
    )
    return await recover_volume(
        folder,
        machine,
        CoordinatorSerde(),
        recovery,
        partial(_raise_all, machine, recovery, image, marks or {}),
        service="semel-coordinator",
        cluster_id=image.cluster_id,
    )


class ControllerKeeper:
    """Keeps the metadata that the controller has decided. Implements ``ImageKeeper``."""

    def __init__(self) -> None:
        """Start without a cluster."""
        self._controller = ControllerMachine(ControllerLimits())

    @property
    def image(self) -> ClusterImage | None:
        """The metadata; None of a volume that is not the controller's."""
        return self._controller.image() if self._controller.has_cluster else None

    def replay(self, offset: int, record: object) -> None:
        """Apply one record, if it is the controller's."""
        if isinstance(record, CONTROLLER_RECORDS):
            self._controller.replay(offset, record)

    def snapshot(self) -> tuple[()]:
        """Return nothing: it is never asked, because nothing is appended."""
        return ()


async def _raise_all(
    machine: CoordinatorMachine,
    recovery: Recovery,
    image: ClusterImage,
    marks: Mapping[InstanceKey, JournalMark],
    runner: Runner[CoordinatorRecord],
) -> dict[str, int | str]:
    facts = _facts(machine, recovery, image)
    records: list[CoordinatorRecord] = []
    if recovery.instance_id == CONTROLLER_ID:
        records += machine.controller.taken_over(image, marks)
    else:
        records += machine.cluster.update(image).records
    records += machine.transactions.raised(
        _owned(recovery.instance_id, image),
        image=image,
        floor=recovery.floor,
        producer_ids_floor=recovery.producer_ids_floor
        + producer_id_counters_start(image.cluster_id),
        now_ms=recovery.now_ms,
    )
    if not recovery.dry_run:
        for some in _commits(records):
            await runner.run(partial(_decided, some), privileged=True)
    return facts


def _commits(records: Sequence[CoordinatorRecord]) -> Iterator[list[CoordinatorRecord]]:
    """Yield the records in pieces of which each is one commit."""
    encode = CoordinatorSerde().encode
    some: list[CoordinatorRecord] = []
    size_bytes = 0
    for record in records:
        some.append(record)
        size_bytes += len(encode(record))
        if len(some) == _RECORDS_PER_COMMIT or size_bytes >= _COMMIT_BYTES:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some


def _decided(records: list[CoordinatorRecord]) -> Result[None, CoordinatorRecord]:
    return Result(None, records)


def _owned(instance_id: int, image: ClusterImage) -> Sequence[int]:
    cluster = ClusterCopy()
    cluster.replay(0, image)
    partitions = range(image.layout.transaction_log_partitions)
    led = cluster.transaction_log_leader
    return [partition for partition in partitions if led(partition).leader_id == instance_id]


def _facts(
    machine: CoordinatorMachine, recovery: Recovery, image: ClusterImage
) -> dict[str, int | str]:
    """Count the entries before anything changes."""
    standing = machine.transactions.queries.standing(now_ms=recovery.now_ms)
    facts: dict[str, int | str] = {
        "transactional ids": standing.transactional_ids,
        **{f"transactions {state.lower()}": n for state, n in standing.counts.items()},
        "open joint transactions": standing.open_joint_transactions,
        "next producer epoch": recovery.floor,
    }
    if recovery.instance_id == CONTROLLER_ID:
        behind = machine.controller.is_behind(image)
        facts["metadata taken over"] = f"version {image.version}" if behind else "no: newest here"
    return facts
