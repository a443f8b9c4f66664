"""The transactions' part of the admin client: listings, outcomes, prepared transactions."""

from collections.abc import Iterable

from aiosemel._admin.admin_part import AdminPart, numbers_of
from aiosemel._cluster import from_wire
from aiosemel._cluster.history_calls import transaction_history
from aiosemel._cluster.transaction_calls import (
    describe_transactions,
    get_outcome,
    list_transactions,
)
from aiosemel._producer.transactions.two_phase_commit import complete_prepared
from aiosemel.errors import IncompleteListError
from aiosemel.types.descriptions import (
    TransactionalIdDescription,
    TransactionListing,
    TransactionOrder,
    TransactionState,
)
from aiosemel.types.prepared_transaction import PreparedTransactionId
from aiosemel.types.transaction_history import HistoryFilter, TransactionHistory
from aiosemel.types.transaction_outcomes import TransactionOutcomeDescription
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.coordinator.v1.outcomes_pb2 import Operator

_STATES = {state: number for number, state in from_wire.TRANSACTION_STATES.items()}
_ORDERS = {
    TransactionOrder.BY_ID: transactions.LIST_TRANSACTIONS_ORDER_UNSPECIFIED,
    TransactionOrder.OLDEST_FIRST: transactions.LIST_TRANSACTIONS_ORDER_OLDEST_FIRST,
}


class TransactionAdmin(AdminPart):
    """Lists and describes transactions, and completes prepared ones."""

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        transactional_id_pattern: str = "",
        order: TransactionOrder = TransactionOrder.BY_ID,
        limit: int | None = None,
        behind: str | None = None,
    ) -> tuple[TransactionListing, ...]:
        """Return the transactional ids of all coordinators, in order, that pass every filter.

        An id has an entry for its current transaction and one for each that is prepared. The
        pattern is a regular expression in RE2's syntax that the whole id must match.

        ``limit`` entries at the most; None: all. If there are as many, more may follow:
        ``position`` of the last one, given as ``behind``, leads to them. Raises InvalidRequestError
        for a pattern that RE2 does not take, and for a ``behind`` that no entry has. Raises
        IncompleteListError, which has the entries of the others, if some coordinators do not
        answer.
        """
        request = transactions.ListTransactionsRequest(
            states=numbers_of(states, _STATES),
            producer_ids=producer_ids,
            running_longer_than_ms=running_longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
            order=_ORDERS[order],
            behind=behind or "",
        )
        return await list_transactions(self._cluster, request, self._deadline(), limit=limit)

    async def describe_transactions(self, transactional_id: str) -> TransactionalIdDescription:
        """Return one transactional id with its transactions.

        Raises TransactionalIdNotFoundError.
        """
        return await describe_transactions(self._cluster, transactional_id, self._deadline())

    async def get_transaction_outcome(
        self,
        transactional_id: str | None,
        producer_epoch: int,
        *,
        producer_id: int | None = None,
    ) -> TransactionOutcomeDescription:
        """Return how a transaction ended; the last 256 of a transactional id are known.

        ``producer_id`` None stands for the present producer of the transactional id.
        ``transactional_id`` None: the producer id is enough. Raises TransactionalIdNotFoundError,
        InvalidProducerIdMappingError, and InvalidRequestError for an epoch that no producer had.
        """
        return await get_outcome(
            self._cluster,
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            deadline=self._deadline(),
        )

    async def transaction_history(
        self,
        wanted: HistoryFilter = HistoryFilter(),  # noqa: B008 - it does not change
        *,
        behind: str | None = None,
        limit: int = 1_000,
    ) -> TransactionHistory:
        """Return transactions that have ended, the last one first, that pass the filter.

        Coordinators keep them for a day, or for less if there are many
        (``transaction_history_entries_max`` and its like). ``behind`` of the returned part leads to
        the one before. Raises InvalidRequestError; IncompleteListError, which has the part of the
        others, if some coordinators do not answer.
        """
        return await transaction_history(
            self._cluster, wanted, behind=behind, limit=limit, deadline=self._deadline()
        )

    async def list_prepared_transactions(
        self, *, transactional_id_pattern: str = ""
    ) -> tuple[PreparedTransactionId, ...]:
        """Return all prepared transactions, by transactional id, of each the oldest first.

        As ``list_transactions`` with ``TransactionState.PREPARED``, which also says since when.
        Raises IncompleteListError as it does.
        """
        try:
            listed = await self.list_transactions(
                states=[TransactionState.PREPARED],
                transactional_id_pattern=transactional_id_pattern,
            )
        except IncompleteListError as error:
            partial = self._prepared_ids(error.partial)
            raise IncompleteListError(partial=partial, errors=error.errors) from error
        return self._prepared_ids(listed)

    def _prepared_ids(
        self, listed: Iterable[TransactionListing]
    ) -> tuple[PreparedTransactionId, ...]:
        return tuple(
            PreparedTransactionId(
                transactional_id=entry.transactional_id,
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                cluster_id=self._cluster.identity.cluster_id,
            )
            for entry in listed
        )

    async def complete_prepared(
        self,
        prepared: PreparedTransactionId,
        *,
        commit: bool,
        wait_until_visible: bool = False,
        operator: str = "",
        reason: str = "",
    ) -> None:
        """Commit or abort a prepared transaction, from outside of its producer.

        For a process that knows what the outside system has decided, and for operators. Nothing
        fences the caller: it must know, not guess. May be called again. ``operator`` and ``reason``
        go into the audit and the history.

        Raises InvalidTxnStateError if it is not prepared, or has ended otherwise;
        ``details["outcome"]`` says how. Raises InvalidProducerIdMappingError of an unknown id, and
        InconsistentClusterIdError of one that names another cluster.
        """
        await complete_prepared(
            self._cluster,
            prepared,
            self._deadline(),
            commit=commit,
            wait_until_visible=wait_until_visible,
            operator=Operator(name=operator, reason=reason) if operator or reason else None,
        )
