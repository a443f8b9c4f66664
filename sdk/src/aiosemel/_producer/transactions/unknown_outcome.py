"""Finding out what became of a commit that was not answered.

As long as the producer may, it sends its commit again: that decides a transaction whose first
commit was lost, and asks about one whose answer was. When it may not, because a successor holds the
transactional id or the producer is closed, the coordinator is asked how the transaction ended. What
is still undecided then is aborted by time-out at the latest. Nothing here ever sends an abort.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiosemel._cluster.permanent_errors import UNHEALED
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._cluster.transaction_calls import get_outcome
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import State, TransactionOutcome
from aiosemel.errors import (
    RequestTimedOutError,
    RetriableError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.types.transaction_outcomes import AbortReason, KnownOutcome, NextStep, Resolution
from semel_common.library_log import get_logger

_log = get_logger(__name__)

_ASK_AGAIN_MS = 1_000
"""The longest pause between two questions about a transaction that is not decided."""


class Resolver:
    """Finds out how the transaction ended that a producer was committing when this was made."""

    def __init__(
        self,
        cluster: Cluster,
        manager: TransactionManager,
        commit: Callable[[], Awaitable[None]],
        is_busy: Callable[[], bool],
        is_closed: Callable[[], bool],
        transactional_id: str,
    ) -> None:
        self._cluster = cluster
        self._manager = manager
        self._commit = commit
        self._is_busy = is_busy
        self._is_closed = is_closed
        self._transactional_id = transactional_id
        self._producer_id = manager.producer_id
        self._producer_epoch = manager.producer_epoch
        self._begun = manager.begun

    async def resolve(self, timeout_ms: int | None) -> Resolution:
        """Ask until it is known; see ``TransactionOutcomeUnknownError.resolve``."""
        if timeout_ms is None:
            return await self._ask()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._ask()
        except TimeoutError:
            raise RequestTimedOutError(
                f"the outcome of transaction {self._producer_epoch} of {self._transactional_id} is"
                f" still not known after {timeout_ms} ms{self._cluster.trouble.suffix}"
            ) from None

    async def _ask(self) -> Resolution:
        attempts = 0
        while True:
            if self._may_commit():
                # Another task may be sending the commit again: that brings the same answer.
                resolution = None if self._is_busy() else await self._commit_again()
            else:
                resolution = await self._ask_coordinator()
            if resolution is not None:
                return resolution
            attempts += 1
            await self._cluster.pause(attempts)

    def _may_commit(self) -> bool:
        return (
            self._manager.state is State.COMMITTING_TRANSACTION
            and self._manager.begun == self._begun
            and not self._is_closed()
        )

    async def _commit_again(self) -> Resolution | None:
        """Send the same commit; None if that has not told the outcome either."""
        try:
            await self._commit()
        except TransactionAbortedError as error:
            return self._resolution(
                KnownOutcome.ABORTED, AbortReason.named(error.details.get("reason"))
            )
        except TransactionOutcomeUnknownError as error:
            if isinstance(error.__cause__, (asyncio.CancelledError, *UNHEALED)):
                raise error.__cause__ from None
            _log.info("asking for the outcome again: %s", error)
            return None
        return self._resolution(KnownOutcome.COMMITTED, None)

    async def _ask_coordinator(self) -> Resolution | None:
        """Ask how it ended; None if that is not decided, or no service answers."""
        try:
            known = await get_outcome(
                self._cluster,
                transactional_id=self._transactional_id,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                deadline=Deadline.after_ms(self._cluster.options.default_api_timeout_ms),
            )
        except UNHEALED:
            raise
        except RetriableError as error:
            _log.info("asking for the outcome again: %s", error)
            return None
        if known.outcome is not KnownOutcome.ONGOING:
            return self._resolution(known.outcome, known.abort_reason)
        await asyncio.sleep(min(known.time_left_ms or 0, _ASK_AGAIN_MS) / 1000)
        return None

    def _resolution(self, outcome: KnownOutcome, reason: AbortReason | None) -> Resolution:
        if self._manager.begun == self._begun and outcome is not KnownOutcome.TOO_OLD_TO_KNOW:
            self._manager.outcome = TransactionOutcome(outcome)
        return Resolution(outcome=outcome, abort_reason=reason, next_step=self._next_step())

    def _next_step(self) -> NextStep:
        if self._is_closed():
            return NextStep.NEW_PRODUCER
        if self._manager.begun != self._begun:
            return NextStep.BEGIN
        match self._manager.state:
            case State.READY:
                return NextStep.BEGIN
            case State.ABORTABLE_ERROR:
                return NextStep.ABORT
            case _:
                return NextStep.NEW_PRODUCER
