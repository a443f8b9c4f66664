"""Open transactions in the groups of one instance, and their outcomes: by marker, or by inquiry."""

from collections.abc import Collection, Sequence

from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    SemelError,
    TransactionCoordinatorFencedError,
)
from semel_common.ids import GroupId
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import Record
from semel_group.machine.values import RefusedMarker, TxnMarker
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochCheck
from semel_runtime.participant.inquiry import (
    InquiryAnswer,
    OpenCursor,
    OpenSince,
    OpenTransactionAt,
    oldest,
)


class GroupTransactions:
    """Ends transactions in groups, and tells which are open."""

    def __init__(self, cluster: ClusterCopy, moves: GroupMoves, offsets: OffsetsMachine) -> None:
        """Decide about the groups of these machines."""
        self._cluster = cluster
        self._moves = moves
        self._offsets = offsets

    # -- outcomes --------------------------------------------------------------------------------

    def write_txn_markers(
        self, cluster_id: str, markers: Sequence[TxnMarker], *, now_ms: int
    ) -> Result[tuple[tuple[RefusedMarker, ...], ...], Record]:
        """End transactions; a repeat ends nothing again. Answers the refusals of each marker.

        Raises InconsistentClusterIdError, and CoordinatorNotAvailableError before the first image.
        """
        self._check_cluster(cluster_id)
        refused: list[tuple[RefusedMarker, ...]] = []
        records: dict[Record, None] = {}
        coordinators = self._offsets.coordinator_epochs.check()
        for marker in markers:
            outcome = self._write_txn_marker(marker, coordinators, now_ms)
            refused.append(outcome.response)
            records |= dict.fromkeys(outcome.records)
        return Result(tuple(refused), tuple(records))

    def apply_inquiry_answers(
        self, answers: Sequence[InquiryAnswer[GroupId]], *, now_ms: int
    ) -> Result[tuple[InquiryAnswer[GroupId], ...], Record]:
        """Do as coordinators answered. Answers which answers ended a transaction.

        An answer of an owner that was deposed since ends nothing: the loop asks again. Nor does an
        answer for a group that was handed over since.
        """
        ended: list[InquiryAnswer[GroupId]] = []
        records: dict[Record, None] = {}
        coordinators = self._offsets.coordinator_epochs.check()
        for answer in answers:
            if not self._is_served(answer.transaction):
                continue
            try:
                outcome = self._offsets.apply_inquiry_answer(answer, coordinators, now_ms=now_ms)
            except TransactionCoordinatorFencedError:
                continue
            records |= dict.fromkeys(outcome.records)
            if outcome.response:
                ended.append(answer)
        return Result(tuple(ended), tuple(records))

    def _write_txn_marker(
        self, marker: TxnMarker, coordinators: CoordinatorEpochCheck, now_ms: int
    ) -> Result[tuple[RefusedMarker, ...], Record]:
        """End one transaction in each of its groups."""
        producer_id = marker.transaction.producer_id
        try:
            records: list[Record] = [*coordinators.see(producer_id, marker.coordinator_epoch)]
        except SemelError as error:
            fenced = (RefusedMarker(group_id=each, error=error) for each in marker.group_ids)
            return Result(tuple(fenced))
        refused: list[RefusedMarker] = []
        for group_id in marker.group_ids:
            try:
                self._moves.check_in_charge(group_id)
            except SemelError as error:
                refused.append(RefusedMarker(group_id=group_id, error=error.as_value()))
                continue
            records += self._offsets.end_transaction(
                group_id, marker.transaction, marker.result, now_ms=now_ms
            )
        return Result(tuple(refused), records)

    # -- open transactions -----------------------------------------------------------------------

    def transactions_to_inquire(
        self, awaited: Collection[OpenTransactionAt[GroupId]] = (), *, now_ms: int
    ) -> Result[tuple[OpenTransactionAt[GroupId], ...], Record]:
        """Return the open transactions whose coordinators are to be asked.

        A call waits for the ``awaited`` transactions: they are due as long as they are open.
        """
        due = {*self._offsets.transactions_to_inquire(now_ms)}
        due.update(open_ for open_ in awaited if self._offsets.is_open(open_))
        return Result(tuple(sorted(filter(self._is_served, due))))

    def open_transactions(
        self, *, open_since_ms: int, limit: int, after: OpenCursor | None = None
    ) -> Result[list[OpenSince[GroupId]], Record]:
        """Return the transactions that have been open since a time or longer, the oldest first."""
        found = (it for it in self._offsets.open_transactions() if self._is_served(it.transaction))
        return Result(oldest(found, open_since_ms=open_since_ms, limit=limit, after=after))

    def has_open_transactions(self) -> bool:
        """Whether any transaction is open here."""
        return self._offsets.has_open_transactions()

    def _is_served(self, transaction: OpenTransactionAt[GroupId]) -> bool:
        return self._moves.is_served(transaction.participant.group_id)

    def _check_cluster(self, cluster_id: str) -> None:
        known = self._cluster.cluster_id
        if not known:
            raise CoordinatorNotAvailableError("this instance does not know its cluster yet")
        if cluster_id != known:
            raise InconsistentClusterIdError(
                f"this instance belongs to cluster {known}, not to {cluster_id!r}"
            )
