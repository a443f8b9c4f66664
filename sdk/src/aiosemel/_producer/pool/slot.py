"""One place in a pool: a transactional id, and the producer that holds it at the moment.

A slot outlives its producers. One that has come to its end is replaced by a new producer of the
same id, unless another process has fenced it: to take the id back would fence that one, and so on.
"""

from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._producer.transactions.transaction_states import State
from aiosemel._shared.context import Context
from aiosemel._shared.error_causes import causes
from aiosemel.errors import (
    ClosedError,
    ProducerFencedError,
    RetriableError,
    SemelError,
    TransactionOutcomeUnknownError,
)
from aiosemel.options.client_options import ProducerOptions

_NEW = (State.UNINITIALIZED, State.INITIALIZING)


class PoolSlot:
    """Has a producer that is ready for a transaction, or makes it ready."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        *,
        wait_until_visible: bool,
    ) -> None:
        """Have a producer that still has to take over its transactional id."""
        self._context = context
        self._options = options
        self._wait_until_visible = wait_until_visible
        self.transactional_id = transactional_id
        self.producer = self._new_producer()
        self.unknown: TransactionOutcomeUnknownError | None = None
        """The commit whose outcome has to be known before the next transaction."""

    @property
    def is_ready(self) -> bool:
        """Whether the next transaction can begin at once."""
        return self.producer.manager.state is State.READY

    @property
    def fence(self) -> ProducerFencedError | None:
        """The error that says that another process has the transactional id now."""
        error = self.producer.manager.error
        chain = () if error is None else causes(error)
        return next((each for each in chain if isinstance(each, ProducerFencedError)), None)

    def has_sent(self, error: TransactionOutcomeUnknownError) -> bool:
        """Whether the commit whose outcome is unknown is of this slot."""
        return error.transactional_id == self.transactional_id

    async def make_ready(self) -> None:
        """End the transaction that was left, or put a new producer in place of one that is done.

        Raises RetriableError: call it again. Raises ProducerFencedError if the producer was fenced.
        Any other error is final.
        """
        if self.unknown is not None:
            await self.unknown.resolve()
            self.unknown = None
        if self.producer.manager.state not in (*_NEW, State.READY, State.FATAL_ERROR):
            await self._abort()
        if self.fence is not None:
            raise self.fence
        if self.producer.manager.state is State.FATAL_ERROR:
            await self.close()
            self.producer = self._new_producer()
        if not self.is_ready:
            await self.producer.init_transactions(
                wait_until_visible=self._wait_until_visible, keep_prepared=False
            )

    async def close(self) -> None:
        """Abort an open transaction, for a while; then stop."""
        await self.producer.close(ClosedError("the pool is closed"))

    async def _abort(self) -> None:
        try:
            await self.producer.abort()
        except RetriableError:
            raise
        except SemelError:
            if self.producer.manager.state is not State.FATAL_ERROR:
                raise

    def _new_producer(self) -> Transactions:
        return Transactions(self._context, self._options, self.transactional_id)
