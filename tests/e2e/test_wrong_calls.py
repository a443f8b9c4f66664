"""Calls with values that no request can carry: refused at once, and the transaction goes on."""

from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace

import pytest

from aiosemel import (
    ConsumerGroupMetadata,
    ConsumerOptions,
    OffsetAndMetadata,
    OffsetReset,
    SemelClient,
    Transaction,
)
from aiosemel.errors import (
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidRequestError,
    InvalidTopicError,
    MessageTooLargeError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

SURROGATE = "\ud800"
LONG = "x" * 256
ERROR_LENGTH_MAX = 300
"""A text that quotes all of a long value is not read by people."""
Call = Callable[[Transaction, str, ConsumerGroupMetadata], Awaitable[object]]


def group(**fields: object) -> Call:
    """Return a call that sends offsets as a member that cannot be."""

    async def call(transaction: Transaction, topic: str, mine: ConsumerGroupMetadata) -> None:
        named = {"group_id": mine.group_id} | fields
        await transaction.send_offsets({(topic, 0): 1}, ConsumerGroupMetadata(**named))  # type: ignore[arg-type]  # wrong on purpose

    return call


def offsets(given: object, *, topic_name: str | None = None, partition: object = 0) -> Call:
    """Return a call that sends an offset that cannot be, or of what cannot be."""

    async def call(transaction: Transaction, topic: str, mine: ConsumerGroupMetadata) -> None:
        named = (topic if topic_name is None else topic_name, partition)
        await transaction.send_offsets({named: given}, mine)  # type: ignore[dict-item, type-var]  # wrong on purpose

    return call


def send(**arguments: object) -> Call:
    """Return a call that sends a record that cannot be."""
    given = {"value": b"no"} | arguments
    return lambda transaction, topic, _: transaction.send(topic, **given)  # type: ignore[arg-type]  # wrong on purpose


def columns(values: object, **arguments: object) -> Call:
    """Return a call that sends columns of which the last row cannot be."""
    return lambda transaction, topic, _: transaction.send_columns(topic, values, **arguments)  # type: ignore[arg-type]  # wrong on purpose


def append(**arguments: object) -> Call:
    """Return a call that appends where nothing can be."""
    given = {"values": [b"no"], "partition": 0, "expected_base_offset": 0} | arguments
    return lambda transaction, topic, _: transaction.append(topic, **given)  # type: ignore[arg-type]  # wrong on purpose


def send_all(*records: object) -> Call:
    """Return a call that sends objects, not all of which are records."""
    return lambda transaction, *_: transaction.send_all(records)


def rows(count: int = 2) -> Iterator[bytes]:
    """Return what can be read only once."""
    return (b"no" for _ in range(count))


NO_GROUP = SimpleNamespace(group_id="", member_id="", member_epoch=-1)
CALLS: dict[str, tuple[type[Exception], Call]] = {
    "group id empty": (InvalidGroupIdError, group(group_id="")),
    "group id long": (InvalidGroupIdError, group(group_id=LONG)),
    "group id surrogate": (InvalidGroupIdError, group(group_id=SURROGATE)),
    "group id bytes": (TypeError, group(group_id=b"g")),
    "member id long": (InvalidRequestError, group(member_id=LONG)),
    "member id number": (TypeError, group(member_id=7)),
    "member epoch low": (InvalidRequestError, group(member_epoch=-2)),
    "member epoch high": (InvalidRequestError, group(member_epoch=1 << 63)),
    "member epoch text": (TypeError, group(member_epoch="1")),
    "member id alone": (InvalidRequestError, group(member_id="m")),
    "member epoch alone": (InvalidRequestError, group(member_epoch=0)),
    "no group": (TypeError, lambda t, topic, _: t.send_offsets({(topic, 0): 1}, NO_GROUP)),  # type: ignore[arg-type]  # wrong on purpose
    "no offsets": (TypeError, lambda t, topic, mine: t.send_offsets([((topic, 0), 1)], mine)),  # type: ignore[arg-type]  # wrong on purpose
    "offset low": (InvalidRequestError, offsets(-1)),
    "offset high": (InvalidRequestError, offsets(1 << 63)),
    "offset bool": (TypeError, offsets(True)),
    "offset text": (TypeError, offsets(OffsetAndMetadata("1"))),  # type: ignore[arg-type]  # wrong on purpose
    "metadata number": (TypeError, offsets(OffsetAndMetadata(1, 1))),  # type: ignore[arg-type]  # wrong on purpose
    "metadata surrogate": (InvalidRequestError, offsets(OffsetAndMetadata(1, SURROGATE))),
    "offset partition low": (InvalidRequestError, offsets(1, partition=-1)),
    "offset partition high": (InvalidRequestError, offsets(1, partition=1 << 31)),
    "offset topic long": (InvalidTopicError, offsets(1, topic_name=LONG * 99)),
    "offset topic": (InvalidTopicError, offsets(1, topic_name=SURROGATE)),
    "value text": (TypeError, send(value="no")),
    "key text": (TypeError, send(key="no")),
    "partition low": (UnknownTopicOrPartitionError, send(partition=-1)),
    "partition high": (UnknownTopicOrPartitionError, send(partition=1 << 40)),
    "partition of many digits": (UnknownTopicOrPartitionError, send(partition=1 << 20_000)),
    "headers number": (TypeError, send(headers=7)),
    "header long": (TypeError, send(headers=[LONG * 99])),
    "timestamp bool": (TypeError, send(timestamp_ms=True)),
    "timestamp of many digits": (InvalidRequestError, send(timestamp_ms=1 << 20_000)),
    "timestamp low": (InvalidRequestError, send(timestamp_ms=-1)),
    "timestamp high": (InvalidRequestError, send(timestamp_ms=1 << 63)),
    "header surrogate": (InvalidRequestError, send(headers=[(SURROGATE, b"")])),
    "record large": (MessageTooLargeError, send(value=bytes(1_000_001))),
    "no record": (TypeError, send_all(("topic", b"no"))),
    "column none": (TypeError, columns(None)),
    "column read once": (TypeError, columns(rows())),
    "column keys read once": (TypeError, columns([b"no"] * 2, keys=rows())),
    "column header number": (TypeError, columns([b"no"], headers=[7])),
    "column text": (TypeError, columns([b"no", "no"])),
    "column keys": (InvalidRequestError, columns([b"no", b"no"], keys=[b"k"])),
    "column time": (InvalidRequestError, columns([b"no", b"no"], timestamps_ms=[1, 1 << 63])),
    "column header": (InvalidRequestError, columns([b"no"], headers=[[(SURROGATE, b"")]])),
    "column large": (MessageTooLargeError, columns([b"no", bytes(1_000_001)])),
    "column partition": (UnknownTopicOrPartitionError, columns([b"no"], partition=9)),
    "append read once": (TypeError, append(values=rows())),
    "append keys read once": (TypeError, append(keys=rows(1))),
    "append header number": (TypeError, append(headers=[7])),
    "append nowhere": (TypeError, append(partition=None)),
    "append low": (InvalidRequestError, append(expected_base_offset=-1)),
    "append high": (InvalidRequestError, append(expected_base_offset=1 << 63)),
    "append fraction": (TypeError, append(expected_base_offset=0.5)),
    "append partition": (UnknownTopicOrPartitionError, append(partition=9)),
}


async def read(client: SemelClient, topic: str, partition: int, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=20)
    async with client.consumer(options=options) as consumer:
        consumer.assign([(topic, partition)])
        while len(values) < count:
            for records in (await consumer.poll()).values():
                values += [record.value for record in records]
    return values


@pytest.mark.parametrize(("error", "call"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("then", ["commit", "abort"])
async def test_a_wrong_call_counts_for_nothing(
    error: type[Exception], call: Call, then: str, client: SemelClient, topic: str, name: str
) -> None:
    mine = ConsumerGroupMetadata(group_id=name)
    async with client.transactional_producer(name) as producer:
        await producer.init_transactions()
        for number in range(2):
            async with producer.transaction(wait_until_visible=True) as transaction:
                await transaction.send(topic, b"%d" % number, partition=0)
                await transaction.send_offsets({(topic, 0): number}, mine)
                with pytest.raises(error) as raised:
                    await call(transaction, topic, mine)
                assert len(str(raised.value)) < ERROR_LENGTH_MAX
                if then == "abort" and number == 0:
                    await producer.abort()
                else:
                    await transaction.send_offsets({(topic, 1): number}, mine)
    expected = [b"0", b"1"] if then == "commit" else [b"1"]
    assert await read(client, topic, 0, len(expected)) == expected
    committed = await client.admin().list_consumer_group_offsets(name)
    assert {at.partition: each.offset for at, each in committed.items() if each} == {0: 1, 1: 1}


async def test_a_transaction_that_its_group_refuses_can_be_aborted(
    client: SemelClient, topic: str, name: str
) -> None:
    """How long metadata may be is a setting of the group coordinator."""
    mine = ConsumerGroupMetadata(group_id=name)
    async with client.transactional_producer(name) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        with pytest.raises(OffsetMetadataTooLargeError):
            await producer.send_offsets({(topic, 0): OffsetAndMetadata(1, "x" * 4_097)}, mine)
        await producer.abort()
        async with producer.transaction(wait_until_visible=True) as transaction:
            await transaction.send_offsets({(topic, 0): 2}, mine)
    committed = await client.admin().list_consumer_group_offsets(name)
    assert [each.offset for each in committed.values() if each] == [2]


@pytest.mark.parametrize("wrong", ["", LONG, SURROGATE], ids=["empty", "long", "surrogate"])
async def test_ids_that_no_service_takes_are_refused_where_they_are_given(
    wrong: str, client: SemelClient
) -> None:
    with pytest.raises(InvalidConfigError, match="transactional_id"):
        client.transactional_producer(wrong)
    with pytest.raises(InvalidGroupIdError, match="group_id"):
        client.consumer(wrong)
    with pytest.raises(InvalidRequestError, match="owner"):
        client.joint_transaction("id", 1, owner=wrong)


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (InvalidTopicError, ("a b", 0)),
        (InvalidTopicError, (SURROGATE, 0)),
        (InvalidTopicError, (LONG * 99, 0)),
        (InvalidRequestError, ("t", -1)),
        (InvalidRequestError, ("t", 1 << 31)),
        (InvalidRequestError, ("t", 1 << 20_000)),
        (TypeError, ("t", True)),
        (TypeError, ("t", "0")),
        (TypeError, LONG * 99),
    ],
    ids=["space", "surrogate", "long", "low", "high", "digits", "bool", "text", "no pair"],
)
async def test_a_partition_that_cannot_be_is_refused_where_it_is_named(
    error: type[Exception], wrong: tuple[str, int], client: SemelClient, topic: str
) -> None:
    admin = client.admin()
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        at_once: list[Callable[[], None]] = [
            lambda: consumer.assign([(topic, 0), wrong]),
            lambda: consumer.seek(wrong, 0),
            lambda: consumer.pause(wrong),
        ]
        for refused in at_once:
            with pytest.raises(error) as raised:
                refused()
            assert len(str(raised.value)) < ERROR_LENGTH_MAX
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: consumer.position(wrong),
            lambda: consumer.end_offsets([wrong]),
            lambda: consumer.offsets_for_times({wrong: 0}),
            lambda: admin.delete_records({wrong: 0}),
            lambda: admin.moves.alter_partition_reassignments({wrong: 0}),
        ]
        for call in calls:
            with pytest.raises(error) as raised:
                await call()
            assert len(str(raised.value)) < ERROR_LENGTH_MAX
        assert consumer.assignment() == {(topic, 0)}


@pytest.mark.parametrize(
    "wrong",
    [-1, 1 << 63, 1 << 20_000, "0", True],
    ids=["low", "high", "digits", "text", "bool"],
)
async def test_an_offset_or_a_time_that_cannot_be_is_refused(
    wrong: int, client: SemelClient, topic: str
) -> None:
    admin, named = client.admin(), {(topic, 0): wrong}
    async with client.consumer() as consumer:
        for call in (
            lambda: consumer.offsets_for_times(named),
            lambda: consumer.offsets_for_times([(topic, 0)]),  # type: ignore[arg-type]  # wrong on purpose
            lambda: admin.list_offsets(named),
            lambda: admin.delete_records(named),
            lambda: admin.count_records(named),
            lambda: admin.wait_for_records(named, max_wait_ms=1),
        ):
            with pytest.raises((InvalidRequestError, TypeError)) as raised:
                await call()
            assert len(str(raised.value)) < ERROR_LENGTH_MAX


@pytest.mark.parametrize("offset", [-1, 1 << 63])
async def test_a_position_that_no_log_has_is_refused(
    offset: int, client: SemelClient, topic: str
) -> None:
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(InvalidRequestError, match=f"offset is {offset}, not 0 to"):
            consumer.seek((topic, 0), offset)
        consumer.seek((topic, 0), 0)
        assert await consumer.position((topic, 0)) == 0
