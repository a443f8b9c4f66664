"""Batches that open to millions of objects: stored as they came, and an error wherever opened."""

import asyncio

import pytest
from broker_service import Broker, code, plain, serving
from compacted_topic import coordinators, keyed

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import Codec
from semel_broker.storage.opened_payloads import PayloadOpener, opens_to
from semel_broker.storage.stored_batches import seal_batch
from semel_common.error_codes import ErrorCode
from semel_common.record_batches.batches import checksum
from semel_common.record_batches.payload_limits import HEADERS_PER_RECORD_MAX, OPENED_MAX_BYTES
from semel_common.wire.methods import PRODUCE
from semel_runtime.process.worker_threads import in_thread
from semel_runtime.testing.payloads import header_bomb
from semel_runtime.testing.volume import MemoryVolume


async def test_the_broker_stores_a_bomb_and_readers_are_told_how_to_go_on(broker: Broker) -> None:
    await broker.produce(plain(b"before"))
    assert code(await broker.produce(header_bomb())) is None
    await broker.produce(plain(b"behind"))

    before = await broker.fetch(plain=True)
    assert ([record.value for record in before.records], before.next_offset) == ([b"before"], 1)
    refused = await broker.fetch(1, plain=True)
    assert code(refused) == ErrorCode.MESSAGE_TOO_LARGE
    assert refused.error.message == (
        "orders-0: batch at offset 1 has more than 1024 headers of one record;"
        " go on at offset 2 to skip the batch"
    )
    behind = await broker.fetch(2, plain=True)
    assert [record.value for record in behind.records] == [b"behind"]
    assert [batch.base_offset for batch in (await broker.fetch()).batches] == [0, 1, 2]


async def test_a_search_and_a_count_go_by_the_header_of_a_bomb(broker: Broker) -> None:
    await broker.produce(plain(b"before", timestamps_ms=[0]))
    await broker.produce(header_bomb())
    found = await broker.list_offset(timestamp_ms=1)
    assert (found.offset, found.timestamp_ms) == (1, 1)
    newest = await broker.list_offset(spec=wire.OFFSET_SPEC_MAX_TIMESTAMP)
    assert newest.offset == 1
    assert (await broker.count_records()).record_count == 2


async def test_a_search_opens_one_payload_of_headers_that_lie_about_their_time(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    run = PayloadOpener.run

    async def counted(self: PayloadOpener, *args: object) -> object:
        nonlocal opened
        opened += 1
        return await run(self, *args)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(PayloadOpener, "run", counted)
    for _ in range(3):
        late = plain(b"x", timestamps_ms=[1])
        late.max_timestamp_ms = 1_000
        late.crc32c = checksum(late, late.payload)
        await broker.produce(late)
    found = await broker.list_offset(timestamp_ms=500)
    assert (found.offset, found.timestamp_ms, opened) == (0, 1_000, 1)


async def test_compaction_keeps_a_bomb_and_goes_on(volume: MemoryVolume) -> None:
    async with serving(volume, coordinators=coordinators()) as broker:
        await broker.produce(header_bomb(b"a"))
        await broker.produce(keyed((b"a", b"old")))
        await broker.produce(keyed((b"a", b"new")))
        await broker.compact()
        result = await broker.fetch()
        assert [batch.base_offset for batch in result.batches] == [0, 2]
        assert (await broker.count_records()).record_count == 2


async def test_a_bomb_with_a_key_is_refused_by_a_compacted_topic(volume: MemoryVolume) -> None:
    """Its headers stay closed there: the key is all that the check asks for."""
    async with serving(volume, coordinators=coordinators()) as broker:
        assert code(await broker.produce(header_bomb())) == ErrorCode.INVALID_RECORD
        assert code(await broker.produce(header_bomb(b"a"))) is None
        assert code(await broker.fetch(plain=True)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_the_payloads_that_one_request_lets_a_broker_open_have_a_bound(
    volume: MemoryVolume,
) -> None:
    async with serving(volume, coordinators=coordinators()) as broker:
        many = wire.ProducePartition(
            topic="orders", partition=0, batches=[header_bomb(b"a"), header_bomb(b"a")]
        )
        (result,) = (await broker.call(PRODUCE, wire.ProduceRequest(partitions=[many]))).partitions
        assert code(result) == ErrorCode.MESSAGE_TOO_LARGE
        assert (await broker.fetch()).high_watermark == 0


async def test_a_payload_that_declares_too_much_is_refused_without_being_opened(
    broker: Broker,
) -> None:
    large = keyed((b"a", bytes(OPENED_MAX_BYTES)), codec=Codec.CODEC_ZSTD)
    result = await broker.produce(large)
    assert code(result) == ErrorCode.MESSAGE_TOO_LARGE
    assert "declares 16777227 bytes" in result.error.message


async def test_plain_records_have_no_more_headers_than_a_reader_opens(broker: Broker) -> None:
    request = wire.ProducePartition(topic="orders", partition=0)
    record = request.records.records.add(value=b"v")
    for _ in range(HEADERS_PER_RECORD_MAX + 1):
        record.headers.add()
    assert code(await broker.produce_as(request)) == ErrorCode.INVALID_RECORD
    del record.headers[0]
    assert code(await broker.produce_as(request)) is None
    (read,) = (await broker.fetch(plain=True)).records
    assert len(read.headers) == HEADERS_PER_RECORD_MAX


async def test_others_go_on_while_a_large_payload_is_opened() -> None:
    events: list[str] = []
    stored = seal_batch(header_bomb(), header_bomb().payload).at(0, 0)
    opener = PayloadOpener(in_thread)
    loop = asyncio.get_running_loop()
    polite = asyncio.Event()

    def work() -> None:
        loop.call_soon_threadsafe(polite.set)
        asyncio.run_coroutine_threadsafe(polite.wait(), loop).result(timeout=50)
        events.append("opened")

    await opener.run(stored, work)
    assert events == ["opened"]


async def test_a_small_payload_is_opened_at_once() -> None:
    small = keyed((b"a", b"1"), codec=Codec.CODEC_ZSTD)
    stored = seal_batch(small, small.payload).at(0, 0)

    async def never(_work: object) -> None:
        raise AssertionError

    assert opens_to(stored) < 100
    assert await PayloadOpener(never).run(stored, lambda: 7) == 7  # type: ignore[arg-type]  # raises
