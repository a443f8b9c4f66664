"""The accumulator by property: any order of sends, answers and losses, against a broker."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from accumulator_harness import LIMITS, REFUSED, append, made
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.record_sizes import record_size
from aiosemel.errors import (
    MessageTooLargeError,
    NetworkExceptionError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
    SemelError,
)
from semel_common.ids import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
MEMORY_BYTES = 600
FATES = ["answered", "unanswered", "lost", "late", "repeated"]
"""Of a request. A repeated one is answered, and arrives once more, however late."""


class Attempt(NamedTuple):
    """A batch as it is on its way in one request."""

    epoch: int
    sequence: int
    values: tuple[bytes | None, ...]

    @property
    def size_bytes(self) -> int:
        return sum(record_size(value, None, ()) for value in self.values)


class Log:
    """A partition, with its broker's knowledge of the one producer."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.limit_bytes = 10_000
        self.forget()

    def forget(self) -> None:
        self.epoch, self.expected = -1, 0
        self.known: set[Attempt] = set()

    def store(self, attempt: Attempt) -> SemelError | None:
        """Do what a broker does."""
        if attempt in self.known:
            return None
        if attempt.size_bytes > self.limit_bytes:
            return MessageTooLargeError("too large", message_max_bytes=self.limit_bytes)
        expected = self.expected if attempt.epoch == self.epoch else 0
        if attempt.epoch < self.epoch or attempt.sequence != expected:
            return OutOfOrderSequenceNumberError(f"{attempt}, not {self.epoch}, {expected}")
        self.known.add(attempt)
        self.values.extend(attempt.values)
        self.epoch, self.expected = attempt.epoch, expected + len(attempt.values)
        return None


class OnItsWay(NamedTuple):
    """A request, with its batches as they were when it was made."""

    request: Request
    attempts: Sequence[Attempt]


class Model(RuleBasedStateMachine):
    """Any order of sends, answers and losses, against brokers that check sequences as real ones."""

    def __init__(self) -> None:
        super().__init__()
        limits = replace(
            LIMITS, batch_size_bytes=80, request_size_max_bytes=200, memory_bytes=MEMORY_BYTES
        )
        self.accumulator = made(limits=limits)
        self.sent: dict[TopicPartition, list[bytes]] = {p: [] for p in PARTITIONS}
        self.logs = {p: Log() for p in PARTITIONS}
        self.requests: list[OnItsWay] = []
        self.late: list[tuple[TopicPartition, Attempt]] = []
        self.returned: list[Batch] = []
        self.failed: set[bytes | None] = set()
        self.now_ms = 0.0

    @rule(partition=st.sampled_from(PARTITIONS), size=st.integers(4, 40))
    def send(self, partition: TopicPartition, size: int) -> None:
        value = b"%0*d" % (size, sum(map(len, self.sent.values())))
        size_bytes = record_size(value, None, ())
        if self.accumulator.has_room(size_bytes):
            append(self.accumulator, partition, size_bytes, value, self.now_ms)
            self.sent[partition].append(value)

    @rule()
    def flush(self) -> None:
        self.accumulator.flush()

    @rule()
    def drain(self) -> None:
        for request in self.accumulator.drain(lambda p: f"broker{p.partition % 2}"):
            attempts = [
                Attempt(batch.producer_epoch, batch.base_sequence, tuple(batch.values))
                for batch in request.batches
            ]
            self.requests.append(OnItsWay(request, attempts))

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), fate=st.sampled_from(FATES))
    def arrive(self, data: st.DataObject, fate: str) -> None:
        self._arrive(self.requests.pop(data.draw(st.integers(0, len(self.requests) - 1))), fate)

    def _arrive(self, way: OnItsWay, fate: str) -> None:
        self.accumulator.answered(way.request)
        for batch, attempt in zip(way.request.batches, way.attempts, strict=True):
            place = batch.topic_partition
            arrives = fate in ("answered", "unanswered", "repeated")
            error = self.logs[place].store(attempt) if arrives else None
            if fate == "late" or (
                fate == "repeated" and not isinstance(error, MessageTooLargeError)
            ):
                self.late.append((place, attempt))
            if fate not in ("answered", "repeated"):
                error = NetworkExceptionError("no answer")
            self._answer(batch, error)

    def _answer(self, batch: Batch, error: SemelError | None) -> None:
        """Do what the sender does."""
        if error is None:
            self.accumulator.acknowledge(batch, 0)
        elif self.accumulator.split(batch, error):
            pass
        elif self.accumulator.refuse(batch, error):
            self.returned.append(batch)
        else:
            self._fail(batch, error)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def arrive_late(self, data: st.DataObject) -> None:
        place, attempt = self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))
        self.logs[place].store(attempt)

    @precondition(lambda self: self.returned)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.returned) - 1))
        self.accumulator.retry(self.returned.pop(at))

    @precondition(lambda self: self.requests)
    @rule()
    def refuse_for_good(self) -> None:
        way = self.requests.pop(0)
        self.accumulator.answered(way.request)
        for batch in way.request.batches:
            self._fail(batch, REFUSED)

    @rule(partition=st.sampled_from(PARTITIONS), limit_bytes=st.integers(20, 90))
    def limit(self, partition: TopicPartition, limit_bytes: int) -> None:
        self.logs[partition].limit_bytes = limit_bytes

    @rule(partition=st.sampled_from(PARTITIONS))
    def forget(self, partition: TopicPartition) -> None:
        """A broker forgets a producer long after everything of it has arrived."""
        batches = self.accumulator._partitions.get(partition)
        on_their_way = {b.topic_partition for way in self.requests for b in way.request.batches}
        if partition not in on_their_way and (batches is None or not batches.in_flight):
            self.logs[partition].forget()
            self.late = [each for each in self.late if each[0] != partition]

    @rule(ms=st.integers(1, 60))
    def expire(self, ms: int) -> None:
        self.now_ms += ms
        values = {batch: tuple(batch.values) for batch in self.accumulator._incomplete}
        for batch in self.accumulator.expire(self.now_ms, lambda _: RequestTimedOutError("late")):
            self.failed.update(values[batch])

    def _fail(self, batch: Batch, error: SemelError) -> None:
        if not batch.is_done:
            self.failed.update(batch.values)
            self.accumulator.fail(batch, error)

    @invariant()
    def memory_is_bounded(self) -> None:
        assert 0 <= self.accumulator.used_bytes <= MEMORY_BYTES

    @invariant()
    def at_most_five_are_unacknowledged_in_sequence_order(self) -> None:
        for partition in self.accumulator._partitions.values():
            sequences = [(b.producer_epoch, b.base_sequence) for b in partition.in_flight]
            assert sum(batch.is_sent for batch in partition.in_flight) <= 5
            assert sequences == sorted(set(sequences))

    @invariant()
    def nothing_is_stored_twice_or_out_of_order(self) -> None:
        for partition, log in self.logs.items():
            order = {value: at for at, value in enumerate(self.sent[partition])}
            places = [order[value] for value in log.values if value is not None]
            assert places == sorted(set(places))

    def teardown(self) -> None:
        """Let everything arrive: each batch is stored unless it was given up."""
        for _ in range(200):
            self.accumulator.flush()
            self.drain()
            for batch in self.returned:
                self.accumulator.retry(batch)
            self.returned.clear()
            for way in self.requests:
                self._arrive(way, "answered")
            self.requests.clear()
        assert self.accumulator.used_bytes == 0, "something is stuck"
        assert not self.accumulator.is_waiting
        for partition, log in self.logs.items():
            assert set(self.sent[partition]) - self.failed <= set(log.values)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=60)
