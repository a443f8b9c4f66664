"""The producer without transactions, as its sender sees it: an id of its own, and nothing else."""

from aiosemel._cluster.permanent_errors import UNHEALED
from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.sending.pipeline import Pipeline
from aiosemel._shared.context import Context
from aiosemel.errors import (
    ApplicationRecoverableError,
    InconsistentClusterIdError,
    RetriableError,
    SemelError,
)
from aiosemel.options.client_options import ProducerOptions
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest
from semel_common.library_log import get_logger
from semel_common.wire.methods import INIT_PRODUCER_ID

_log = get_logger(__name__)


class Idempotence:
    """Owns the pipeline of a producer without transactions. Implements ``Owner``."""

    def __init__(self, context: Context, options: ProducerOptions) -> None:
        """Ask for the producer id when the first batch is to be sent."""
        self._cluster = context.cluster
        self._options = options
        self._instance_id = context.new_name()
        self._init_number = 0
        self._error: SemelError | None = None
        self.producer_token = b""
        """As it came with the producer id."""
        self.pipeline = Pipeline(context, options, self)

    def check(self) -> None:
        """Raise ApplicationRecoverableError once nothing can be sent any more.

        Raises InconsistentClusterIdError when no producer of this client can send any more.
        """
        if self._error is None:
            return
        if isinstance(self._error, InconsistentClusterIdError):
            raise InconsistentClusterIdError(self._error.message, **self._error.details)
        raise ApplicationRecoverableError(
            f"this producer can only be closed: {self._error.message}"
        ) from self._error

    # -- Owner ----------------------------------------------------------------------------------

    @property
    def transactional_id(self) -> None:
        """None: there are no transactions."""
        return

    @property
    def may_send(self) -> bool:
        """Whether batches may be sent now."""
        return self._error is None and not self.pipeline.needs_producer_id

    async def identify(self) -> None:
        """Ask for a producer id, until there is one: at first, and when its token is refused."""
        if not self.pipeline.needs_producer_id or not self.pipeline.is_answered:
            return
        self._init_number += 1
        request = InitProducerIdRequest(
            instance_id=self._instance_id, init_number=self._init_number
        )
        while self._must_ask:
            try:
                response = await self._cluster.call(
                    self._cluster.any_coordinator(),
                    INIT_PRODUCER_ID,
                    request,
                    deadline=Deadline.after_ms(self._options.max_block_ms),
                    request_timeout_ms=self._options.request_timeout_ms,
                )
            except UNHEALED as error:
                # The waiting callers get the error; later sends ask again.
                self.pipeline.discard_queued(error)
                _log.warning("no producer id yet: %s", error)
            except RetriableError as error:
                _log.warning("no producer id yet: %s", error)
            except SemelError as error:
                self.broken(error)
            else:
                self.producer_token = response.producer_token
                self.pipeline.start_epoch(response.producer_id, response.producer_epoch)

    @property
    def _must_ask(self) -> bool:
        return self.pipeline.needs_producer_id and self._error is None

    def sending(self, request: Request) -> None:
        """Batches need no announcement here."""

    def acknowledged(self, batch: Batch) -> None:
        """Acknowledgements need no announcement here."""

    def failed(self, batch: Batch, error: SemelError) -> None:
        """Log the failure, because perhaps no caller awaits the delivery."""
        _log.warning("batch not delivered to %s: %s", batch.topic_partition, error)

    def broken(self, error: SemelError) -> None:
        """Give up everything, now and later."""
        self._error = self._error or error
        self.pipeline.discard_all(error)
