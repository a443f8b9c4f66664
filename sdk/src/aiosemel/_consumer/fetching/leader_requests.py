"""The requests of a consumer to one broker: starts and ends of logs, and records."""

from collections.abc import Sequence

from aiosemel._cluster.failures import named
from aiosemel._cluster.permanent_errors import UNHEALED, UNHEALED_MAX
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.fetching.held_partitions import Asked, Held, HeldPartitions
from aiosemel._consumer.fetching.recovery import AGAIN, Recovery
from aiosemel._consumer.partition_state import Chunk, OffsetReset
from aiosemel._consumer.positions import FetchPosition, PositionQuestion, Positions
from aiosemel.errors import RefreshRetriableError, SemelError
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.isolation import ISOLATION
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.wire import status
from semel_common.wire.methods import FETCH, LIST_OFFSETS, Method, Req, Res

_SPECS = {
    OffsetReset.EARLIEST: broker.OFFSET_SPEC_EARLIEST,
    OffsetReset.LATEST: broker.OFFSET_SPEC_LATEST,
}


class LeaderRequests:
    """Asks leaders on behalf of one consumer."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions[RecordBatch],
        options: ConsumerOptions,
        holds: HeldPartitions,
        recovery: Recovery,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._options = options
        self._isolation = ISOLATION[options.isolation_level]
        self._holds = holds
        self._recovery = recovery

    async def find_resets(
        self, address: str, questions: Sequence[PositionQuestion], held: Held
    ) -> None:
        """Find the starts and ends of logs."""
        request = broker.ListOffsetsRequest(
            isolation_level=self._isolation,
            partitions=[
                broker.ListOffsetsPartition(
                    topic_id=item.topic_id,
                    partition=item.ticket.topic_partition.partition,
                    spec=_SPECS[item.reset],
                )
                for item in questions
            ],
        )
        response = await self._attempt(address, LIST_OFFSETS, request, questions)
        results = () if response is None else response.partitions
        failures = []
        for each, result in zip(questions, results, strict=response is not None):
            if result.HasField("error"):
                failures.append((each, status.from_value(result.error)))
            else:
                self._positions.found(each.ticket, result.offset)
        await self._settle(address, held, failures)

    async def fetch(self, address: str, asked: Sequence[FetchPosition], held: Held) -> None:
        """Fetch records, or wait for the first ones."""
        partition_max_bytes = self._positions.partition_max_bytes
        request = broker.FetchRequest(
            isolation_level=self._isolation,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=min(self._options.fetch_max_bytes, partition_max_bytes * len(asked)),
            max_wait_ms=self._options.fetch_max_wait_ms,
            partitions=[
                broker.FetchPartition(
                    topic_id=item.topic_id,
                    partition=item.ticket.topic_partition.partition,
                    fetch_offset=item.offset,
                    partition_max_bytes=partition_max_bytes,
                )
                for item in asked
            ],
        )
        response = await self._attempt(address, FETCH, request, asked)
        results = () if response is None else response.partitions
        if response is not None and not any(result.batches for result in results):
            self._positions.quiet(item.ticket for item in asked)
        failures = []
        for each, result in zip(asked, results, strict=response is not None):
            if result.HasField("error"):
                failures.append((each, status.from_value(result.error)))
            else:
                chunks = map(_chunk, result.batches)
                self._positions.fetched(each, chunks, result.next_offset)
        await self._settle(address, held, failures)

    async def _attempt(
        self,
        address: str,
        method: Method[Req, Res],
        request: Req,
        asked: Sequence[Asked],
    ) -> Res | None:
        """Ask once; returns None after a failure, which has been dealt with."""
        try:
            response = await self._cluster.attempt_at(
                address, method, request, deadline=self._recovery.deadline()
            )
        except AGAIN as error:
            await self._recovery.recover(address, error)
            if isinstance(error, UNHEALED) and self._recovery.failures_of(address) >= UNHEALED_MAX:
                self._holds.fail(asked, error)
        except SemelError as error:
            self._holds.fail(asked, error)
        else:
            self._recovery.succeeded(address)
            return response
        return None

    async def _settle(
        self,
        address: str,
        held: Held,
        failures: Sequence[tuple[Asked, SemelError]],
    ) -> None:
        """Release the answered partitions; pause the others, which the loop asks for again."""
        retriable = []
        for each, error in failures:
            if isinstance(error, AGAIN):
                retriable.append((each.ticket, error))
            else:
                self._positions.failed(each.ticket, named(error, each.ticket.topic_partition))
        if not retriable:
            return
        self._holds.release(held, held - {ticket for ticket, _ in retriable})
        worst = [error for _, error in retriable if isinstance(error, RefreshRetriableError)]
        await self._recovery.recover(address, worst[0] if worst else retriable[0][1])


def _chunk(batch: RecordBatch) -> Chunk[RecordBatch]:
    return Chunk(
        batch=None if batch.control else batch,
        size_bytes=len(batch.payload),
        next_offset=batch.base_offset + batch.record_count,
    )
