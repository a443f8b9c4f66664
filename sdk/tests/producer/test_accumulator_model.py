"""The accumulator by property: any order of sends, answers and losses, against a broker."""

from accumulator_harness import LIMITS, REFUSED, append, made
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aiosemel._producer.accumulator import Limits
from aiosemel._producer.batch import Batch, Request
from aiosemel.errors import (
    NetworkExceptionError,
    OutOfOrderSequenceNumberError,
    SemelError,
)
from semel_common.ids import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(3)]


class Model(RuleBasedStateMachine):
    """Any order of sends, answers and losses, against brokers that check sequences as real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.accumulator = made(limits=Limits(**{**_fields(LIMITS), "memory_bytes": 200}))
        self.sent: dict[TopicPartition, list[bytes]] = {p: [] for p in PARTITIONS}
        self.stored: dict[TopicPartition, list[bytes | None]] = {p: [] for p in PARTITIONS}
        self.known: dict[TopicPartition, dict[tuple[int, int], list[bytes | None]]] = {
            p: {} for p in PARTITIONS
        }
        self.expected: dict[TopicPartition, tuple[int, int]] = dict.fromkeys(PARTITIONS, (-1, 0))
        self.first_sent: dict[Batch, tuple[int, int, tuple[bytes | None, ...]]] = {}
        self.requests: list[Request] = []
        self.returned: list[Batch] = []
        self.failed: list[tuple[TopicPartition, list[bytes | None]]] = []
        self.count = 0
        self.now_ms = 0.0

    @rule(partition=st.sampled_from(PARTITIONS), size=st.integers(1, 45))
    def send(self, partition: TopicPartition, size: int) -> None:
        if self.accumulator.has_room(size):
            self.count += 1
            value = b"%d" % self.count
            append(self.accumulator, partition, size, value, self.now_ms)
            self.sent[partition].append(value)

    @rule()
    def flush(self) -> None:
        self.accumulator.flush()

    @rule()
    def drain(self) -> None:
        for request in self.accumulator.drain(lambda p: f"broker{p.partition % 2}"):
            self.requests.append(request)
            for batch in request.batches:
                content = (batch.producer_epoch, batch.base_sequence, tuple(batch.values))
                assert self.first_sent.setdefault(batch, content) == content

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), arrives=st.booleans(), answered=st.booleans())
    def answer(self, data: st.DataObject, arrives: bool, answered: bool) -> None:
        request = self.requests.pop(data.draw(st.integers(0, len(self.requests) - 1)))
        self.accumulator.answered(request)
        for batch in request.batches:
            error = self._store(batch) if arrives else NetworkExceptionError("lost")
            if not answered:
                error = NetworkExceptionError("lost")
            if error is None:
                self.accumulator.acknowledge(batch, 0)
            elif self.accumulator.may_retry(batch, error):
                self.returned.append(batch)
            else:
                self._fail(batch, error)

    def _store(self, batch: Batch) -> SemelError | None:
        """Do what a broker does."""
        partition = batch.topic_partition
        epoch, sequence = self.expected[partition]
        content = list(self.first_sent[batch][2])
        key = (batch.producer_epoch, batch.base_sequence)
        if self.known[partition].get(key) == content:
            return None
        if key < (epoch, sequence) or key[1] != (sequence if key[0] == epoch else 0):
            return OutOfOrderSequenceNumberError(f"{key}, not {(epoch, sequence)}")
        self.known[partition][key] = content
        self.stored[partition].extend(content)
        self.expected[partition] = (key[0], key[1] + len(content))
        return None

    @precondition(lambda self: self.returned)
    @rule()
    def retry(self) -> None:
        self.accumulator.retry(self.returned.pop(0))

    @precondition(lambda self: any(request.batches for request in self.requests))
    @rule()
    def refuse(self) -> None:
        request = self.requests.pop(0)
        self.accumulator.answered(request)
        for batch in request.batches:
            self._fail(batch, REFUSED)

    @rule(ms=st.integers(1, 60))
    def expire(self, ms: int) -> None:
        self.now_ms += ms
        for batch in self.accumulator.expire(self.now_ms):
            self._note_failed(batch)

    def _fail(self, batch: Batch, error: SemelError) -> None:
        if not batch.is_done:
            self.accumulator.fail(batch, error)
            self._note_failed(batch)

    def _note_failed(self, batch: Batch) -> None:
        if batch in self.first_sent:
            self.failed.append((batch.topic_partition, list(self.first_sent[batch][2])))

    @invariant()
    def memory_is_bounded(self) -> None:
        assert 0 <= self.accumulator.used_bytes <= 200

    @invariant()
    def at_most_five_are_unacknowledged_in_sequence_order(self) -> None:
        for partition in self.accumulator._partitions.values():
            sequences = [(b.producer_epoch, b.base_sequence) for b in partition.in_flight]
            assert len(sequences) <= 5
            assert sequences == sorted(set(sequences))

    @invariant()
    def nothing_is_stored_twice_or_out_of_order(self) -> None:
        for partition in PARTITIONS:
            order = {value: at for at, value in enumerate(self.sent[partition])}
            places = [order[value] for value in self.stored[partition] if value is not None]
            assert places == sorted(set(places))

    def teardown(self) -> None:
        """Let everything arrive: what was not given up is stored."""
        for _ in range(200):
            self.accumulator.flush()
            self.drain()
            for batch in self.returned:
                self.accumulator.retry(batch)
            self.returned.clear()
            for request in self.requests:
                self.accumulator.answered(request)
                for batch in request.batches:
                    error = self._store(batch)
                    if error is None:
                        self.accumulator.acknowledge(batch, 0)
                    elif self.accumulator.may_retry(batch, error):
                        self.returned.append(batch)
                    else:
                        self._fail(batch, error)
            self.requests.clear()
        assert self.accumulator.used_bytes == 0, "something is stuck"
        assert not self.accumulator.is_waiting


def _fields(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, name) for name in Limits.__slots__}


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=60)
