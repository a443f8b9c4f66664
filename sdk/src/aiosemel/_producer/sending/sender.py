"""The I/O task of a producer: drains the accumulator, and sorts answers by their next step.

Each request runs in a task of its own, so that several are in flight. Between a wake-up and the
drain nothing waits: what has queued goes at once, and what comes later is in the next request.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Protocol

from aiosemel._answers.broker import check_produced
from aiosemel._answers.connector import unfit_answer
from aiosemel._answers.fields import Unfit
from aiosemel._cluster.failures import Failures
from aiosemel._cluster.last_error import named
from aiosemel._cluster.retry import QUIET_MS, Deadline
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.refused_batches import not_in_time
from aiosemel._producer.batching.size_limits import told_of
from aiosemel._producer.sending.producer_spans import spans_of
from aiosemel._producer.sending.request_encoding import produce_request
from aiosemel._producer.sending.topic_cache import Topics
from aiosemel._shared.background_task import end_task
from aiosemel._shared.context import Context
from aiosemel.errors import (
    InconsistentClusterIdError,
    RefreshRetriableError,
    RetriableError,
    SemelError,
    UnknownServerError,
    UnknownTopicIdError,
)
from aiosemel.options.client_options import ProducerOptions
from semel.broker.v1.broker_pb2 import ProducePartitionResult
from semel_common.ids import TopicPartition
from semel_common.library_log import get_logger
from semel_common.telemetry import trace_context
from semel_common.wire import status
from semel_common.wire.methods import PRODUCE

_NOTHING = nullcontext()
_log = get_logger(__name__)

Answer = int | SemelError
"""The base offset of a batch, or why it was refused."""


class Owner(Protocol):
    """The producer whose records are sent: what it knows, decides, and wants to hear."""

    @property
    def transactional_id(self) -> str | None:
        """The transactional id; None without transactions."""
        ...

    @property
    def producer_token(self) -> bytes:
        """The proof that the producer id is its own; empty: no service asks for it."""
        ...

    @property
    def may_send(self) -> bool:
        """Whether batches may be sent now."""
        ...

    async def identify(self) -> None:
        """See to it that the accumulator knows producer id and epoch."""
        ...

    def sending(self, request: Request) -> None:
        """Note what is about to be sent."""
        ...

    def acknowledged(self, batch: Batch) -> None:
        """Note that a batch is stored."""
        ...

    def failed(self, batch: Batch, error: SemelError) -> None:
        """Note that a batch is given up, and why."""
        ...

    def broken(self, error: SemelError) -> None:
        """Note that nothing is sent any more."""
        ...


class Sender:
    """Sends what one producer accumulates. ``settled`` is told of every batch that is done."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        accumulator: Accumulator,
        topics: Topics,
        owner: Owner,
        settled: Callable[[Batch], None],
        *,
        is_traced: bool,
    ) -> None:
        """Start no task yet."""
        self._context = context
        self._cluster = context.cluster
        self._options = options
        self._accumulator = accumulator
        self._topics = topics
        self._owner = owner
        self._settled = settled
        self._is_traced = is_traced
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._failures: dict[str, Failures] = {}
        """Of requests in a row, by broker; without an entry, the last one has succeeded."""
        self._leaders_missing = False
        self._finding_leaders = False

    def wake(self) -> None:
        """Let the task look at the accumulator; the first time, start it."""
        if self._task is None or self._task.done():
            self._task = self._context.spawn(self._run(), name="producer sender")
        self._woken.set()

    def cancel_requests(self) -> None:
        """Wait no longer for answers: what they answer is over."""
        for request in self._requests:
            request.cancel()

    async def close(self) -> None:
        """Stop the task. Unacknowledged records stay in the accumulator."""
        if self._expiry is not None:
            self._expiry.cancel()
        await end_task(self._task)

    # -- the loop -------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    self._watch_deadline()
                    await self._owner.identify()
                    if self._owner.may_send:
                        self._send_ready(group)
        except Exception as error:
            self._owner.broken(UnknownServerError(f"the sender has ended by a bug: {error!r}"))
            raise

    def _send_ready(self, group: asyncio.TaskGroup) -> None:
        gone: set[TopicPartition] = set()
        for request in self._accumulator.drain(partial(self._broker_of, gone)):
            self._owner.sending(request)
            task = group.create_task(self._produce(request, group), name="produce")
            self._requests.add(task)
            task.add_done_callback(partial(self._answered, request))
        for topic_partition in gone:
            for batch in self._accumulator.unsent(topic_partition):
                self._give_up(batch, self._deleted(topic_partition.topic_id))
        if (self._leaders_missing or self._cluster.cache.is_old) and not self._finding_leaders:
            self._finding_leaders = True
            group.create_task(self._find_leaders(), name="find leaders")

    def _broker_of(self, gone: set[TopicPartition], topic_partition: TopicPartition) -> str | None:
        try:
            return self._cluster.leader_address(topic_partition)
        except UnknownTopicIdError:
            # The leader was known when the batch was begun, and the metadata only get newer.
            gone.add(topic_partition)
            return None
        except RefreshRetriableError as error:
            self._leaders_missing = True
            self._warn(f"{self._topics.place(topic_partition)}", error)
            return None

    async def _find_leaders(self) -> None:
        self._leaders_missing = False
        await self._refresh()
        await self._cluster.pause(attempts=1)
        self._finding_leaders = False
        self._woken.set()

    # -- one request ----------------------------------------------------------------------------

    async def _produce(self, request: Request, group: asyncio.TaskGroup) -> None:
        spans = spans_of(request) if self._is_traced else ()
        with trace_context.within(spans) if spans else _NOTHING:
            answers = await self._call(request)
        refused: list[tuple[Batch, SemelError]] = []
        now_ms = asyncio.get_running_loop().time() * 1000
        for batch, answer in zip(request.batches, answers, strict=True):
            if isinstance(answer, int):
                self._acknowledge(batch, answer)
            elif self._accumulator.split(batch, answer):
                self._note_split(batch, answer)
            elif self._accumulator.refuse(batch, answer, now_ms):
                batch.trouble = named(answer, request.broker)
                refused.append((batch, answer))
            else:
                self._give_up(batch, answer)
        if refused:
            self._warn(request.broker, refused[0][1])
            group.create_task(self._retry(refused), name="retry")
        elif request.broker in self._failures:
            del self._failures[request.broker]

    def _warn(self, broker: str, error: SemelError) -> None:
        """Tell the log of a broker that takes no records, at first and from time to time."""
        self._cluster.trouble.failed(error, broker)
        failures = self._failures.setdefault(broker, Failures(quiet_ms=QUIET_MS))
        level = failures.failed(error)
        _log.log(level, "records are not acknowledged yet, still trying: %s", named(error, broker))

    def _answered(self, request: Request, task: "asyncio.Task[None]") -> None:
        """Let the next request go. A task that is cancelled before it has begun says nothing."""
        self._requests.discard(task)
        self._accumulator.answered(request)
        if self._accumulator.is_waiting:
            self._woken.set()

    async def _call(self, request: Request) -> list[Answer]:
        message = produce_request(
            request,
            transactional_id=self._owner.transactional_id,
            producer_token=self._owner.producer_token,
            compression=self._options.compression,
        )
        try:
            response = await self._cluster.send(
                request.broker, PRODUCE, message, timeout_ms=self._options.request_timeout_ms
            )
        except SemelError as error:
            return [error] * len(request.batches)
        try:
            check_produced(request.batches, response)
        except Unfit as unfit:
            return [unfit_answer(request.broker, PRODUCE, unfit)] * len(request.batches)
        return [_answer(result) for result in response.partitions]

    def _acknowledge(self, batch: Batch, base_offset: int) -> None:
        if not batch.is_done:
            self._accumulator.acknowledge(batch, base_offset)
            self._owner.acknowledged(batch)
            self._settled(batch)

    def _note_split(self, batch: Batch, error: SemelError) -> None:
        """Go on with the parts of a batch: its waiters wait for them."""
        _log.debug("a batch is cut into %d: %s", len(batch.parts), error)
        self._settled(batch)

    def _give_up(self, batch: Batch, error: SemelError) -> None:
        if not batch.is_done:
            error = self._told(batch, error)
            self._accumulator.fail(batch, error)
            self._owner.failed(batch, error)
            self._settled(batch)

    def _not_in_time(self, batch: Batch) -> SemelError:
        timeout_ms = self._options.delivery_timeout_ms
        trouble = self._cluster.trouble.suffix
        return not_in_time(batch, self._topics.place(batch.topic_partition), timeout_ms, trouble)

    def _told(self, batch: Batch, error: SemelError) -> SemelError:
        return told_of(self._topics.name_of(batch.topic_partition.topic_id), batch, error)

    def _deleted(self, topic_id: str) -> SemelError:
        name = self._topics.name_of(topic_id)
        return UnknownTopicIdError(
            f"topic {name!r} was deleted, or this client may not see it any more: no topic has its"
            f" id {topic_id}; later sends go to the present topic of that name",
            topic=name,
        )

    async def _retry(self, refused: list[tuple[Batch, SemelError]]) -> None:
        errors = [error for _, error in refused]
        if any(isinstance(error, RefreshRetriableError) for error in errors):
            await self._refresh()
        if (end := self._cluster.identity.end) is not None:
            for batch, _ in refused:
                self._give_up(batch, end)
            return
        if any(isinstance(error, RetriableError) for error in errors):
            await self._cluster.pause(max(batch.attempts for batch, _ in refused))
        for batch, _ in refused:
            self._accumulator.retry(batch)
        self._woken.set()

    async def _refresh(self) -> None:
        try:
            await self._cluster.cache.refresh(Deadline.after_ms(self._options.request_timeout_ms))
        except InconsistentClusterIdError as error:
            self._owner.broken(error)
        except SemelError as error:
            _log.debug("metadata not refreshed: %s", error)

    # -- time -----------------------------------------------------------------------------------

    def _watch_deadline(self) -> None:
        """See to it that batches are given up in time. One timer: the oldest batch is the first."""
        deadline_ms = self._accumulator.next_deadline_ms()
        if self._expiry is None and deadline_ms is not None:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_at(deadline_ms / 1000, self._expire, deadline_ms)

    def _expire(self, deadline_ms: float) -> None:
        self._expiry = None
        # The loop's time in milliseconds may be a rounding error before the deadline in seconds.
        now_ms = max(deadline_ms, asyncio.get_running_loop().time() * 1000)
        for batch in self._accumulator.expire(now_ms, self._not_in_time):
            assert batch.error is not None
            self._owner.failed(batch, batch.error)
            self._settled(batch)
        self._watch_deadline()
        self._woken.set()


def _answer(result: ProducePartitionResult) -> Answer:
    return status.from_value(result.error) if result.HasField("error") else result.base_offset
