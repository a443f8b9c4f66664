"""Transactions in memory, with every fault that a transactional producer can report.

A producer with the promises of ``TransactionalProducer``: it refuses calls that its state does not
allow, and a commit happened, did not happen, or has an unknown outcome.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import TypeVar, cast

from consumer_harness import Client, pass_time
from fake_cluster import FakeCluster

from aiosemel import (
    ConsumerGroupMetadata,
    ConsumerRecord,
    Handler,
    OffsetAndMetadata,
    OnPoison,
    Outputs,
    ProducerRecord,
    TopicPartition,
    TransactionalProducer,
    Transform,
    TransformEvent,
    TransformOptions,
)
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel._transform.semel_transactions import SemelTransactions
from aiosemel.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    MessageTooLargeError,
    ProducerFencedError,
    RequestTimedOutError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
    UnknownMemberIdError,
    UnknownServerError,
)
from semel_common import ids

Event = TypeVar("Event", bound=TransformEvent)

HUGE = b"huge"
"""An output with this value is refused by its broker."""


class Fault(StrEnum):
    """What happens to the next call of a method."""

    TIMED_OUT = "TIMED_OUT"
    """Nothing was sent; the call may be repeated."""
    ABORTABLE = "ABORTABLE"
    """The transaction can only be aborted."""
    ABORTED = "ABORTED"
    """Of a commit: the coordinator has decided on an abort."""
    UNKNOWN_DONE = "UNKNOWN_DONE"
    """Of a commit: it took effect, and the answer was lost."""
    UNKNOWN_LOST = "UNKNOWN_LOST"
    """Of a commit: the request was lost; repeated, it takes effect."""
    UNKNOWN_ABORTED = "UNKNOWN_ABORTED"
    """Of a commit: no service answers; when asked again, it was aborted meanwhile."""
    ENDED = "ENDED"
    """This producer has come to its end; nothing took effect."""
    ENDED_UNKNOWN_DONE = "ENDED_UNKNOWN_DONE"
    """Of a commit: it took effect, the answer was lost, and this producer will not hear of it."""
    ENDED_UNKNOWN_LOST = "ENDED_UNKNOWN_LOST"
    """The same, but it did not take effect."""
    FENCED = "FENCED"
    """A successor has taken over; nothing took effect."""
    FENCED_UNKNOWN_DONE = "FENCED_UNKNOWN_DONE"
    """Of a commit: it took effect, then a successor took over."""
    BROKEN = "BROKEN"
    """The server broke an assumption of its own; nothing took effect."""
    CANCELLED_UNKNOWN = "CANCELLED_UNKNOWN"
    """Of a commit: it is cancelled after it was sent, and not answered in the time of grace."""
    HANG = "HANG"
    """No answer ever comes."""


class FakeTransactions:
    """The transactions of a cluster, and what became visible of them."""

    def __init__(
        self, fake: FakeCluster, *, refusal: type[SemelError] = UnknownMemberIdError
    ) -> None:
        self.fake = fake
        self.refusal = refusal
        """What the group says to offsets of a member that it does not have."""
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        """What to do to the next calls, by the method's name."""
        self.visible: list[tuple[str, bytes | None]] = []
        """Topics and values of committed outputs, in the order of the commits."""
        self.log: list[str] = []
        """The calls, in their order."""
        self.made: list[FakeProducer] = []
        self.markers_are_late = False
        """Whether groups do not hear of outcomes."""
        self.hanging = asyncio.Event()
        """Set when a call hangs."""
        self.commits_after: list[Callable[[], None]] = []
        """What else happens, once, right before the next offsets are taken."""

    def make(self) -> TransactionalProducer:
        producer = FakeProducer(self)
        self.made.append(producer)
        return cast("TransactionalProducer", producer)

    def values(self, topic: str = "out") -> list[bytes | None]:
        """Return the visible values of a topic."""
        return [value for each, value in self.visible if each == topic]


SENT = "COMMITTING"
"""The state of a producer whose commit went out: only an outcome is definite now."""
_WHEN_SENT = {
    Fault.TIMED_OUT: Fault.UNKNOWN_LOST,
    Fault.ENDED: Fault.ENDED_UNKNOWN_LOST,
    Fault.FENCED: Fault.ENDED_UNKNOWN_LOST,
    Fault.BROKEN: Fault.ENDED_UNKNOWN_LOST,
}


@dataclass
class FakeProducer:
    """One producer. Stands in for ``TransactionalProducer``."""

    service: FakeTransactions
    state: str = "UNINITIALIZED"
    sent: list[tuple[str, bytes | None]] = field(default_factory=list)
    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    decided: bool | None = None
    """What the coordinator has made of a commit whose answer was lost."""
    refused: SemelError | None = None

    async def init_transactions(self) -> None:
        await self._begin("init", "UNINITIALIZED")
        for other in self.service.made:
            if other is not self:
                other.state = "FATAL"
                other.settle()
        self.state = "READY"

    async def begin_transaction(self) -> None:
        await self._begin("begin", "READY")
        self.sent, self.offsets, self.decided, self.refused = [], {}, None, None
        self.state = "IN_TRANSACTION"

    async def send(self, topic: str, value: bytes | None, **columns: object) -> object:
        await self._begin("send", "IN_TRANSACTION")
        assert columns.keys() == {"key", "partition", "headers", "timestamp_ms"}
        self.sent.append((topic, value))
        if value == HUGE:
            self.refused = MessageTooLargeError("the broker takes less")
        return object()  # a delivery that no caller awaits

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        while self.service.commits_after:
            self.service.commits_after.pop()()
        await self._begin("send_offsets", "IN_TRANSACTION")
        member = self.service.fake.members.get(group.member_id)
        if member is None or member.epoch < group.member_epoch:
            self.state = "ABORTABLE"
            raise self.service.refusal(f"group has no member {group.member_id}")
        self.offsets = dict(offsets)
        self.service.fake.unstable |= self._keys()

    async def commit(self) -> None:
        if self.decided is not None:
            return await self._answer_again()
        await self._begin("commit", "IN_TRANSACTION", "COMMITTING")
        if self.refused is not None:
            self.state = "ABORTABLE"
            raise TransactionAbortedError("a record was refused") from self.refused
        self._apply()
        self.state = "READY"
        return None

    async def abort(self) -> None:
        await self._begin("abort", "IN_TRANSACTION", "ABORTABLE")
        self.settle()
        self.state = "READY"

    async def close(self) -> None:
        self.service.log.append("close")
        self.settle()
        if self.state in {"IN_TRANSACTION", "ABORTABLE"}:
            self.state = "READY"

    def settle(self) -> None:
        """Let nothing of the transaction be pending any more: its outcome is known to the group."""
        if not self.service.markers_are_late:
            self.service.fake.unstable -= self._keys()
        self.offsets = {}

    # -- inside ----------------------------------------------------------------------------------

    def _apply(self) -> None:
        """Make all of it visible."""
        fake = self.service.fake
        assert self.offsets, "a commit without offsets"
        for (topic, partition), (offset, metadata) in self.offsets.items():
            fake.committed[fake.key(topic, partition)] = (offset, metadata)
        self.service.visible += self.sent
        self.settle()

    def _keys(self) -> set[ids.TopicPartition]:
        return {self.service.fake.key(*offset) for offset in self.offsets}

    async def _answer_again(self) -> None:
        self.service.log.append("commit")
        await asyncio.sleep(0)
        decided, self.decided = self.decided, None
        if decided:
            self.state = "READY"
        else:
            self.state = "ABORTABLE"
            self.settle()
            raise TransactionAbortedError("aborted by its time-out")

    async def _begin(self, method: str, *states: str) -> None:
        self.service.log.append(method)
        await asyncio.sleep(0)
        if self.state == "FATAL":
            raise ApplicationRecoverableError("this producer is done")
        if self.state == "ABORTABLE" and self.state not in states:
            kind = TransactionAbortedError if method == "commit" else TransactionAbortableError
            raise kind("the transaction can only be aborted")
        if self.state not in states:
            raise IllegalStateError(f"{method} is not possible in state {self.state}")
        if self.service.faults[method]:
            fault = self.service.faults[method].popleft()
            await self._fail(method, _WHEN_SENT.get(fault, fault) if self.state == SENT else fault)

    async def _fail(self, method: str, fault: Fault) -> None:  # noqa: C901, PLR0912 - one case for each fault
        match fault:
            case Fault.HANG:
                self.service.hanging.set()
                await asyncio.Event().wait()
            case Fault.CANCELLED_UNKNOWN:
                self.state = "COMMITTING"
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError as cancelled:
                    raise self._unknown(cancelled, can_ask_again=True) from cancelled
            case Fault.TIMED_OUT:
                raise RequestTimedOutError("no answer")
            case Fault.ABORTABLE | Fault.ABORTED:
                self.state = "ABORTABLE"
                kind = TransactionAbortedError if method == "commit" else TransactionAbortableError
                raise kind("the transaction can only be aborted")
            case Fault.ENDED:
                self._end(method, ApplicationRecoverableError("the id has expired"))
            case Fault.FENCED:
                self._end(method, ProducerFencedError("a successor has taken over"))
            case Fault.BROKEN:
                self.state = "ABORTABLE"
                raise UnknownServerError("broken")
            case Fault.UNKNOWN_DONE:
                self._apply()
                self.decided, self.state = True, "COMMITTING"
                raise self._unknown(RequestTimedOutError("no answer"), can_ask_again=True)
            case Fault.UNKNOWN_LOST:
                self.state = "COMMITTING"
                raise self._unknown(RequestTimedOutError("no answer"), can_ask_again=True)
            case Fault.UNKNOWN_ABORTED:
                self.decided, self.state = False, "COMMITTING"
                raise self._unknown(RequestTimedOutError("no answer"), can_ask_again=True)
            case Fault.ENDED_UNKNOWN_DONE | Fault.FENCED_UNKNOWN_DONE:
                self._apply()
                self.state = "FATAL"
                cause = (
                    ProducerFencedError("a successor has taken over")
                    if fault is Fault.FENCED_UNKNOWN_DONE
                    else UnknownServerError("broken")
                )
                raise self._unknown(cause, can_ask_again=False)
            case Fault.ENDED_UNKNOWN_LOST:
                self.state = "FATAL"
                raise self._unknown(UnknownServerError("broken"), can_ask_again=False)

    def _end(self, method: str, error: SemelError) -> None:
        """Let this producer be done, its transaction not committed."""
        self.state = "FATAL"
        if method == "commit":
            raise TransactionAbortedError("it is not committed") from error
        raise error

    def _unknown(
        self, cause: BaseException, *, can_ask_again: bool
    ) -> TransactionOutcomeUnknownError:
        unknown = TransactionOutcomeUnknownError(
            "nobody knows",
            transactional_id="t",
            producer_id=1,
            producer_epoch=1,
            can_ask_again=can_ask_again,
        )
        unknown.__cause__ = cause
        return unknown


@dataclass
class App:
    """A transformation from topic ``in`` to topic ``out``, and the events that it reports."""

    transform: Transform
    events: list[TransformEvent]
    running: asyncio.Task[None] | None = None

    async def until(self, reached: Callable[[], bool]) -> None:
        """Let it run until something is so, or it has ended by itself."""
        assert self.running is not None
        while not reached():
            if self.running.done():
                await self.running
                return
            await pass_time(0.05)

    async def stop(self) -> None:
        """Stop it, and wait until it has stopped."""
        assert self.running is not None
        self.transform.stop()
        await self.running

    def events_of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


async def copy(records: Sequence[ConsumerRecord], outputs: Outputs) -> Iterable[ProducerRecord]:
    """Send every record as it is, the first by hand and the others as they are returned."""
    await outputs.send("out", records[0].value)
    return [ProducerRecord(topic="out", value=record.value) for record in records[1:]]


@asynccontextmanager
async def app_of(
    client: Client,
    service: FakeTransactions,
    handler: Handler = copy,
    *,
    on_poison: OnPoison | None = None,
    starts: bool = True,
    **options: object,
) -> AsyncIterator[App]:
    """Run a transformation beside a block; at its end, cancel what still runs."""
    events: list[TransformEvent] = []

    async def on_event(event: TransformEvent) -> None:
        events.append(event)

    consumer = client.consumer("g", auto_offset_reset="earliest")
    settings = TransformOptions(**options)  # type: ignore[arg-type]  # a test's own
    pausing = Pausing(settings, Random(0))
    producers = ProducerSupply(
        service.make, pausing, take_over_when_fenced=settings.take_over_when_fenced
    )
    transform = Transform(
        consumer,
        SemelTransactions(consumer, producers, pausing),
        pausing,
        source=["in"],
        handler=handler,
        on_poison=on_poison,
        on_event=on_event,
        options=settings,
    )
    app = App(transform, events)
    if starts:
        app.running = asyncio.get_running_loop().create_task(transform.run(), name="transform")
    try:
        yield app
    finally:
        if app.running is not None:
            app.running.cancel()
            await asyncio.wait([app.running])
