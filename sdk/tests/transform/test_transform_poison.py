"""Handlers that raise, and records that no handler can process."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from consumer_harness import client_of
from fake_cluster import FakeCluster
from transform_harness import HUGE, FakeTransactions, Fault, app_of

from aiosemel import (
    ConsumerRecord,
    OffsetAndMetadata,
    Outputs,
    ProducerRecord,
    RecordPoisoned,
    TopicPartition,
    TransactionAborted,
    TransactionCommitted,
)
from aiosemel._transform.poison import Input, Suspects
from aiosemel.errors import (
    IllegalStateError,
    KafkaStorageError,
    MessageTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)

Records = Sequence[ConsumerRecord]
P0, P1 = TopicPartition("in", 0), TopicPartition("in", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("in")
    fake.append("in", 0, [b"%d" % number for number in range(6)])
    return fake


def consumed(fake: FakeCluster) -> int:
    return fake.committed.get(fake.key("in"), (0, ""))[0]


class Picky:
    """A handler that cannot process some values, for a while or ever."""

    def __init__(self, *bad: bytes, heals_after: int | None = None) -> None:
        self.calls: Counter[bytes | None] = Counter()
        self.sizes: list[int] = []
        self._bad = bad
        self._heals_after = heals_after

    async def __call__(self, records: Records, outputs: Outputs) -> None:
        self.sizes.append(len(records))
        for record in records:
            self.calls[record.value] += 1
            healed = self._heals_after is not None and (
                self.calls[record.value] > self._heals_after
            )
            if record.value in self._bad and not healed:
                raise ValueError(f"cannot process {record.value!r}")
            await outputs.send("out", record.value)


async def to_dead_letters(
    record: ConsumerRecord, error: Exception, outputs: Outputs
) -> Iterable[ProducerRecord]:
    await outputs.send("dead", record.value)
    return [ProducerRecord(topic="reasons", value=str(error).encode())]


async def skip(_record: ConsumerRecord, _error: Exception, _outputs: Outputs) -> None:
    pass


# -- the record at fault ---------------------------------------------------------------------------


async def test_a_handler_that_fails_once_is_given_its_records_again(fake: FakeCluster) -> None:
    handler = Picky(b"3", heals_after=1)
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler) as app:
        await app.until(lambda: consumed(fake) == 6)
        assert service.values() == [b"%d" % number for number in range(6)]
        assert app.transform.stats.aborted == 1
        assert app.transform.stats.poisoned == 0


async def test_a_poison_record_is_found_among_others_and_skipped(fake: FakeCluster) -> None:
    handler = Picky(b"2", b"4")
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, handler, on_poison=skip, handler_retries=2) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        assert service.values() == [b"0", b"1", b"3", b"5"]
        assert handler.calls[b"2"] == 1 + 3, "with the others, then alone three times"
        assert handler.calls[b"4"] == 3
        poisoned = app.events_of(RecordPoisoned)
        assert [event.record.value for event in poisoned] == [b"2", b"4"]
        assert all(isinstance(event.error, ValueError) for event in poisoned)
        assert app.transform.stats.poisoned == 2
        assert app.transform.stats.records_in == 6


async def test_once_the_suspects_are_past_records_are_taken_together_again(
    fake: FakeCluster,
) -> None:
    handler = Picky(b"1")
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, handler, on_poison=skip, handler_retries=0) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        fake.append("in", 0, [b"6", b"7", b"8"])
        await app.until(lambda: consumed(fake) == 9)
        assert handler.sizes == [6, 1, 1, 1, 1, 1, 1, 3]


async def test_a_poison_record_goes_to_a_dead_letter_topic_in_its_transaction(
    fake: FakeCluster,
) -> None:
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, Picky(b"2"), on_poison=to_dead_letters) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        assert service.values("dead") == [b"2"]
        assert service.values("reasons") == [b"cannot process b'2'"]
        assert app.transform.stats.records_out == 7


async def test_a_poison_record_is_given_up_once_also_when_its_transaction_aborts(
    fake: FakeCluster,
) -> None:
    handler = Picky(b"0")
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(
            client, service, handler, on_poison=to_dead_letters, max_records=1, handler_retries=0
        ) as app,
    ):
        service.faults["commit"].extend([Fault.ABORTED, Fault.UNKNOWN_ABORTED])
        await app.until(lambda: consumed(fake) == 6)
        assert service.values("dead") == [b"0"]
        assert handler.calls[b"0"] == 1, "it is not given to the handler any more"
        assert app.transform.stats.poisoned == 1
        assert len(app.events_of(RecordPoisoned)) == 1


async def test_without_a_place_for_poison_the_handlers_error_stops_it(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Picky(b"2")
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler, starts=False) as app:
        with pytest.raises(ValueError, match="cannot process b'2'") as raised:
            await app.transform.run()
        assert raised.value.__notes__ == ["on the record at offset 2 of in-0"]
        assert caplog.messages[-1] == (
            "the transaction of the record at offset 2 of in-0 did not commit: "
            """ValueError("cannot process b'2'")"""
        )
        assert handler.calls[b"2"] == 4
        assert service.values() == [b"0", b"1"]
        assert consumed(fake) == 2
        assert fake.members == {}


async def test_what_the_place_for_poison_raises_stops_it(fake: FakeCluster) -> None:
    async def refuse(record: ConsumerRecord, error: Exception, _: Outputs) -> None:
        raise LookupError(f"no place for {record.offset}") from error

    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, Picky(b"2"), on_poison=refuse, starts=False) as app,
    ):
        with pytest.raises(LookupError, match="no place for 2") as raised:
            await app.transform.run()
        assert raised.value.__notes__ == ["on the record at offset 2 of in-0"]
        assert consumed(fake) == 2
        assert service.log[-2:] == ["abort", "close"]


async def test_trouble_on_the_way_to_the_place_for_poison_does_not_stop_it(
    fake: FakeCluster,
) -> None:
    service = FakeTransactions(fake)

    async def to_dead(record: ConsumerRecord, _: Exception, outputs: Outputs) -> None:
        if "dead" not in service.log:
            service.log.append("dead")
            service.faults["send"].append(Fault.TIMED_OUT)
        await outputs.send("dead", record.value)

    async with (
        client_of(fake) as client,
        app_of(client, service, Picky(b"2"), on_poison=to_dead) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        assert service.values("dead") == [b"2"]


# -- whose fault it is not -----------------------------------------------------------------------


@pytest.mark.parametrize("error", [RequestTimedOutError("no answer"), KafkaStorageError("full")])
async def test_trouble_on_the_way_is_not_the_records_fault(
    fake: FakeCluster, error: RequestTimedOutError
) -> None:
    errors = [error] * 5
    sizes: list[int] = []

    async def handler(records: Records, outputs: Outputs) -> None:
        sizes.append(len(records))
        if errors:
            raise errors.pop()
        for record in records:
            await outputs.send("out", record.value)

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler) as app:
        await app.until(lambda: consumed(fake) == 6)
        assert sizes == [6] * 6
        assert app.transform.stats.aborted == 5


async def test_an_output_that_is_refused_is_its_inputs_fault(fake: FakeCluster) -> None:
    """Only the commit gets the error, because no caller awaits the delivery."""

    async def handler(records: Records, outputs: Outputs) -> None:
        for record in records:
            await outputs.send("out", HUGE if record.value == b"3" else record.value)

    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, handler, on_poison=to_dead_letters) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        assert service.values("dead") == [b"3"]
        assert isinstance(app.events_of(RecordPoisoned)[0].error, MessageTooLargeError)


async def test_an_output_topic_that_is_not_there_is_not_waited_for_for_ever(
    fake: FakeCluster,
) -> None:
    async def handler(_records: Records, _outputs: Outputs) -> None:
        raise UnknownTopicOrPartitionError("no topic out")

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler, starts=False) as app:
        with pytest.raises(UnknownTopicOrPartitionError):
            await app.transform.run()


async def test_nothing_can_be_sent_when_the_handler_has_returned(fake: FakeCluster) -> None:
    kept: list[Outputs] = []

    async def handler(_records: Records, outputs: Outputs) -> None:
        kept.append(outputs)

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler) as app:
        await app.until(lambda: consumed(fake) == 6)
        with pytest.raises(IllegalStateError, match="is over"):
            await kept[0].send("out", b"late")


async def test_events_say_what_happened_in_order(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, Picky(b"0"), on_poison=skip, handler_retries=0) as app,
    ):
        await app.until(lambda: consumed(fake) == 6)
        kinds = [type(event) for event in app.events[:4]]
        assert kinds == [
            TransactionAborted,
            TransactionAborted,
            RecordPoisoned,
            TransactionCommitted,
        ]


# -- without I/O ---------------------------------------------------------------------------------


def record(partition: int, offset: int) -> ConsumerRecord:
    return ConsumerRecord(
        topic="in", partition=partition, offset=offset, timestamp_ms=0, key=b"k", value=None
    )


def test_input_knows_where_it_begins_and_ends() -> None:
    taken = Input()
    assert len(taken) == 0
    taken.add({P1: [record(1, 5), record(1, 6)], P0: [record(0, 2)]})
    taken.add({P1: [record(1, 9)]})
    assert len(taken) == 4
    assert taken.size_bytes() == 4
    assert [(r.partition, r.offset) for r in taken.records()] == [(0, 2), (1, 5), (1, 6), (1, 9)]
    assert taken.starts() == {P0: 2, P1: 5}
    assert taken.ends({P0: 4, P1: 3}) == {P0: OffsetAndMetadata(4), P1: OffsetAndMetadata(10)}


def test_input_of_partitions_that_go_is_dropped() -> None:
    taken = Input()
    taken.add({P0: [record(0, 2)], P1: [record(1, 5)]})
    taken.drop([P0, TopicPartition("in", 7)])
    assert taken.starts() == {P1: 5}
    assert taken.ends({}) == {P1: OffsetAndMetadata(6)}


def test_suspects_are_read_one_by_one_until_all_of_them_are_past() -> None:
    suspects = Suspects(retries=1)
    together = [record(0, 2), record(0, 3), record(1, 5)]
    suspects.failed(together, ValueError())
    assert suspects.any
    assert suspects.poison(together) is None
    suspects.passed({P0: OffsetAndMetadata(3)})
    suspects.passed({P1: OffsetAndMetadata(6)})
    assert suspects.any
    suspects.passed({P0: OffsetAndMetadata(4)})
    assert not suspects.any


def test_a_suspect_is_poison_after_it_has_failed_alone_too_often() -> None:
    suspects = Suspects(retries=1)
    first, second = ValueError("first"), ValueError("second")
    suspects.failed([record(0, 2)], first)
    assert suspects.poison([record(0, 2)]) is None
    suspects.failed([record(0, 2)], second)
    failure = suspects.poison([record(0, 2)])
    assert failure is not None
    assert failure.error is second
    assert suspects.poison([record(0, 3)]) is None


def test_suspects_of_partitions_that_go_are_forgotten() -> None:
    suspects = Suspects(retries=0)
    suspects.failed([record(0, 2)], ValueError())
    suspects.failed([record(1, 2)], ValueError())
    suspects.forget([P0])
    assert suspects.poison([record(0, 2)]) is None
    assert suspects.poison([record(1, 2)]) is not None
    assert suspects.any
