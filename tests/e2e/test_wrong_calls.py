"""Calls with values that no request can carry: refused at once, and the transaction goes on."""

from collections.abc import Awaitable, Callable
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
    "no group": (TypeError, lambda t, topic, _: t.send_offsets({(topic, 0): 1}, NO_GROUP)),  # type: ignore[arg-type]  # wrong on purpose
    "offset low": (InvalidRequestError, offsets(-1)),
    "offset high": (InvalidRequestError, offsets(1 << 63)),
    "offset bool": (TypeError, offsets(True)),
    "metadata surrogate": (InvalidRequestError, offsets(OffsetAndMetadata(1, SURROGATE))),
    "offset partition low": (InvalidRequestError, offsets(1, partition=-1)),
    "offset partition high": (InvalidRequestError, offsets(1, partition=1 << 31)),
    "offset topic": (InvalidTopicError, offsets(1, topic_name=SURROGATE)),
    "value text": (TypeError, send(value="no")),
    "key text": (TypeError, send(key="no")),
    "partition low": (UnknownTopicOrPartitionError, send(partition=-1)),
    "partition high": (UnknownTopicOrPartitionError, send(partition=1 << 40)),
    "timestamp low": (InvalidRequestError, send(timestamp_ms=-1)),
    "timestamp high": (InvalidRequestError, send(timestamp_ms=1 << 63)),
    "header surrogate": (InvalidRequestError, send(headers=[(SURROGATE, b"")])),
    "record large": (MessageTooLargeError, send(value=bytes(1_000_001))),
    "column text": (TypeError, columns([b"no", "no"])),
    "column keys": (InvalidRequestError, columns([b"no", b"no"], keys=[b"k"])),
    "column time": (InvalidRequestError, columns([b"no", b"no"], timestamps_ms=[1, 1 << 63])),
    "column header": (InvalidRequestError, columns([b"no"], headers=[[(SURROGATE, b"")]])),
    "column large": (MessageTooLargeError, columns([b"no", bytes(1_000_001)])),
    "column partition": (UnknownTopicOrPartitionError, columns([b"no"], partition=9)),
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
                with pytest.raises(error):
                    await call(transaction, topic, mine)
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
