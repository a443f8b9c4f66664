"""The producer without transactions: records in, each stored exactly once."""

from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.sending.idempotent_session import Idempotence
from aiosemel._producer.sending.pipeline import Check
from aiosemel._producer.sends import Sends
from aiosemel._shared.context import Context
from aiosemel.errors import ClosedError, RequestTimedOutError
from aiosemel.options.client_options import ProducerOptions
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Producer(Sends):
    """Sends records, each of them stored exactly once. Made by ``SemelClient.producer``.

    Records of one partition are stored in the order in which they were sent, unless one of them is
    given up. Safe to share between tasks of one event loop.
    """

    def __init__(self, context: Context, options: ProducerOptions) -> None:
        self._context = context
        self._owner = Idempotence(context, options)
        super().__init__(self._owner.pipeline)
        self._close_timeout_ms = options.close_timeout_ms
        self._close_deadline: Deadline | None = None
        """None: as long as records may take."""
        self._home = context.cluster.home
        self._closed = False

    async def flush(self) -> None:
        """Wait until all that was sent so far is stored, or given up: its deliveries say which."""
        self._check_send()
        await self._pipeline.flush(None)

    async def close(self) -> None:
        """Wait for all records that were sent, then stop. May be called twice.

        Cancelled, it gives up the records that are not stored yet. After an exception has left the
        block of the producer or of its client, it waits for ``close_timeout_ms`` at most.
        """
        self._home.check()
        self._closed = True
        try:
            await self._pipeline.flush(self._close_deadline)
        except RequestTimedOutError:
            _log.warning(
                "closed after %d ms: %d bytes of unacknowledged records are given up",
                self._close_timeout_ms,
                self._pipeline.used_bytes,
            )
        finally:
            await self._pipeline.close(_closed())
            self._context.forget(self)

    def hurry(self) -> None:
        """Let ``close`` wait for ``close_timeout_ms`` from now at most."""
        if self._close_deadline is None:
            self._close_deadline = Deadline.after_ms(self._close_timeout_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None:
            self.hurry()
        await self.close()

    def _check_send(self) -> None:
        self._home.check()
        if self._closed:
            raise _closed()
        self._owner.check()

    def _check_after_wait(self) -> Check:
        return self._check_send


def _closed() -> ClosedError:
    return ClosedError("the producer is closed")
