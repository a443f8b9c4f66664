"""Which coordinator may still speak for a transaction-log partition (protocol.md, section 4). Pure.

Of every transaction-log partition the newest coordinator epoch is kept: what a deposed coordinator
says is refused.
"""

from collections.abc import Iterable

from msgspec import Struct

from semel_common.errors import TransactionCoordinatorFencedError
from semel_common.ids import transaction_log_partition_of

_NO_EPOCH = -1


class CoordinatorEpochSeen(Struct, frozen=True, kw_only=True):
    """A newer owner of a transaction-log partition has spoken."""

    transaction_log_partition: int
    coordinator_epoch: int


class CoordinatorEpochs:
    """The newest coordinator epochs that were seen. Only replay changes them."""

    def __init__(self) -> None:
        """Start without any."""
        self._seen: dict[int, tuple[int, CoordinatorEpochSeen]] = {}

    def newest(self, transaction_log_partition: int) -> int:
        """Return the newest epoch of a partition; -1: none was seen."""
        seen = self._seen.get(transaction_log_partition)
        return _NO_EPOCH if seen is None else seen[1].coordinator_epoch

    def check(self) -> "CoordinatorEpochCheck":
        """Return what checks one request."""
        return CoordinatorEpochCheck(self)

    def replay(self, offset: int, record: CoordinatorEpochSeen) -> None:
        """Apply one record."""
        self._seen[record.transaction_log_partition] = (offset, record)

    def snapshot(self) -> Iterable[tuple[int, CoordinatorEpochSeen]]:
        """Return all of them, as they are now."""
        return tuple(self._seen.values())


class CoordinatorEpochCheck:
    """Checks the parts of one request in order; each part knows the epochs of earlier parts."""

    def __init__(self, known: CoordinatorEpochs) -> None:
        """Leave the known epochs unchanged."""
        self._known = known
        self._seen: dict[int, int] = {}

    def see(self, producer_id: int, coordinator_epoch: int) -> tuple[CoordinatorEpochSeen, ...]:
        """Return the fact that the partition of a producer id has a newer owner, if it has.

        Raises TransactionCoordinatorFencedError for an epoch older than the newest.
        """
        partition = transaction_log_partition_of(producer_id)
        newest = self._seen.get(partition)
        if newest is None:
            newest = self._known.newest(partition)
        if coordinator_epoch == newest:
            return ()
        if coordinator_epoch < newest:
            raise TransactionCoordinatorFencedError(
                f"coordinator epoch {coordinator_epoch} of transaction-log partition {partition} "
                f"is older than {newest}",
                coordinator_epoch=coordinator_epoch,
                newest_epoch=newest,
            )
        self._seen[partition] = coordinator_epoch
        seen = CoordinatorEpochSeen(
            transaction_log_partition=partition, coordinator_epoch=coordinator_epoch
        )
        return (seen,)
