"""The producer of a transformation, and the next one when it has come to its end."""

from collections.abc import Awaitable, Callable

from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._shared.error_causes import causes
from aiosemel._transform.pausing import Pausing
from aiosemel.errors import ProducerFencedError, RetriableError, TransactionOutcomeUnknownError
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class ProducerSupply:
    """Makes the producers of one loop, one after another."""

    def __init__(
        self,
        make: Callable[[], TransactionalProducer],
        pausing: Pausing,
        *,
        take_over_when_fenced: bool,
        initialize: Callable[[TransactionalProducer], Awaitable[object]] | None = None,
    ) -> None:
        self._make = make
        self._initialize = initialize or (lambda producer: producer.init_transactions())
        self._pausing = pausing
        self._take_over_when_fenced = take_over_when_fenced
        self._present: TransactionalProducer | None = None
        self.made = 0
        """How many producers there have been."""

    async def start(self) -> TransactionalProducer:
        """Make a producer; every earlier transaction of its id is settled, and visible."""
        producer = self._make()
        try:
            await self._initialize(producer)
        except BaseException:
            await producer.close()
            raise
        self._present = producer
        self.made += 1
        return producer

    async def replace(self, *ends: Exception) -> None:
        """Put a new producer in the place of one that has come to its end, for these reasons.

        Raises the reason if another instance has fenced it, unless the loop is to take over.
        """
        for end in ends:
            fenced = next((e for e in causes(end) if isinstance(e, ProducerFencedError)), None)
            if fenced is not None and not self._take_over_when_fenced:
                raise end if isinstance(end, TransactionOutcomeUnknownError) else fenced
        await self.close()
        while True:
            try:
                await self.start()
            except RetriableError as error:
                if self._pausing.stopping:
                    raise
                _log.warning("making a new producer again: %s", error)
                await self._pausing.pause()
            else:
                return

    @property
    def present(self) -> TransactionalProducer:
        """The producer of the next transaction."""
        assert self._present is not None, "start makes the first one"
        return self._present

    async def close(self) -> None:
        """Close the present producer, if there is one."""
        if self._present is not None:
            await self._present.close()
