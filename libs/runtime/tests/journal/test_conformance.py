"""What every journal engine must do, run on each of them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from journal_harness import (
    APPEND_BYTES_MAX,
    PLENTY,
    Engine,
    batch,
    claimed,
    entries_of,
    pieces_of,
    read_all,
)

from semel_runtime.journal import (
    Journal,
    JournalFencedError,
    JournalOpenError,
    JournalTooLargeError,
    JournalUnknownError,
    Piece,
)

# -- claims ----------------------------------------------------------------------------------------


async def test_first_claim_of_a_new_journal_gets_epoch_one_and_nothing_to_read(
    engine: Engine,
) -> None:
    journal = await engine.open()

    claim = await journal.claim("token")

    assert (claim.epoch, claim.first_offset, claim.next_offset) == (1, 0, 0)
    assert not claim.has_snapshot
    assert await read_all(journal) == []


async def test_every_claim_with_another_token_raises_the_epoch(engine: Engine) -> None:
    journal = await claimed(engine, "a")
    await journal.close()

    claim = await (await engine.open()).claim("b")

    assert claim.epoch == 2


async def test_repeated_claim_with_the_same_token_gets_the_same_epoch(engine: Engine) -> None:
    journal = await engine.open()
    first = await journal.claim("token")

    assert await journal.claim("token") == first
    assert await journal.claim("token", epoch=first.epoch) == first


async def test_claim_of_a_given_epoch_takes_that_epoch(engine: Engine) -> None:
    journal = await claimed(engine, "a")

    assert (await journal.claim("b", epoch=7)).epoch == 7


async def test_claim_of_an_epoch_that_is_not_higher_is_fenced(engine: Engine) -> None:
    journal = await engine.open()
    await journal.claim("a", epoch=7)

    with pytest.raises(JournalFencedError, match="it has claim epoch 7, this one 7"):
        await (await engine.open()).claim("b", epoch=7)


async def test_claim_finds_what_was_appended_before(engine: Engine) -> None:
    journal = await claimed(engine, "a")
    await journal.append(0, [b"zero", b"one"])
    await journal.close()

    successor = await engine.open()
    claim = await successor.claim("b")

    assert (claim.first_offset, claim.next_offset) == (0, 2)
    assert await read_all(successor) == [b"zero", b"one"]


# -- fencing ---------------------------------------------------------------------------------------


async def test_elder_twin_can_never_append_again(engine: Engine) -> None:
    elder = await claimed(engine, "a")
    await elder.append(0, [b"elder"])
    younger = await claimed(engine, "b")

    with pytest.raises(JournalFencedError) as caught:
        await elder.append(1, [b"late"], [batch()])

    assert (caught.value.claim_epoch, caught.value.stored_epoch) == (1, 2)
    await younger.append(1, [b"younger"])
    with pytest.raises(JournalFencedError):
        await elder.append(2, [b"again"])
    assert await read_all(younger) == [b"elder", b"younger"]
    assert await younger.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY) == []


async def test_elder_twin_cannot_verify(engine: Engine) -> None:
    elder = await claimed(engine, "a")
    await elder.append(0, [])
    await claimed(engine, "b")

    with pytest.raises(JournalFencedError):
        await elder.append(0, [])


async def test_elder_twin_cannot_replace_or_delete(engine: Engine) -> None:
    elder = await claimed(engine, "a")
    await elder.append(0, [b"zero"], [batch()])
    younger = await claimed(engine, "b")

    with pytest.raises(JournalFencedError):
        await elder.replace(1, pieces_of([(0, b"snapshot")]))
    with pytest.raises(JournalFencedError):
        await elder.batches.delete(1, before=10, rows_max=10, bytes_max=PLENTY)

    assert await read_all(younger) == [b"zero"]
    assert len(await younger.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)) == 1


async def test_owner_deposed_while_it_writes_a_snapshot_puts_nothing_in_place(
    engine: Engine,
) -> None:
    elder = await claimed(engine, "a")
    await elder.append(0, [b"zero"])

    async def overtaken() -> AsyncIterator[Piece]:
        yield [(0, b"snapshot")]
        await claimed(engine, "b")

    with pytest.raises(JournalFencedError):
        await elder.replace(1, overtaken())

    younger = await engine.open()
    assert not (await younger.claim("b")).has_snapshot
    assert await read_all(younger) == [b"zero"]


async def test_elder_twin_leaves_the_pieces_of_the_younger_ones_snapshot(engine: Engine) -> None:
    elder = await claimed(engine, "a")
    await elder.append(0, [b"zero"])
    younger = await claimed(engine, "b")

    async def disturbed() -> AsyncIterator[Piece]:
        yield [(0, b"first")]
        with pytest.raises(JournalFencedError):
            await elder.replace(1, pieces_of([(0, b"elder")]))
        yield [(0, b"second")]

    await younger.replace(1, disturbed())

    assert await entries_of(younger.read_snapshot()) == [(0, b"first"), (0, b"second")]


# -- appends ---------------------------------------------------------------------------------------


async def test_append_with_nothing_to_write_leaves_nothing(engine: Engine) -> None:
    journal = await claimed(engine)

    await journal.append(0, [])
    await journal.append(0, [b"zero"])

    assert await read_all(journal) == [b"zero"]


@pytest.mark.parametrize("records", [[], [b"record"]], ids=["verify", "append"])
@pytest.mark.parametrize("at", [0, 2])
async def test_append_at_another_offset_than_the_end_kills_the_handle(
    engine: Engine, at: int, records: list[bytes]
) -> None:
    journal = await claimed(engine, "a")
    await journal.append(0, [b"zero"])

    with pytest.raises(JournalUnknownError):
        await journal.append(at, records)
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await journal.append(1, [b"one"])

    assert await read_all(await claimed(engine, "b")) == [b"zero"]


async def test_empty_and_odd_records_come_back_as_they_were(engine: Engine) -> None:
    journal = await claimed(engine)
    records = [b"", b"\x00\xff" * 100, "żółw".encode(), b""]

    await journal.append(0, records)

    assert await read_all(journal) == records


async def test_append_over_the_limit_writes_nothing_and_the_handle_lives(engine: Engine) -> None:
    journal = await claimed(engine)
    half = bytes(APPEND_BYTES_MAX // 2 + 1)

    with pytest.raises(JournalTooLargeError) as caught:
        await journal.append(0, [half, half])
    with pytest.raises(JournalTooLargeError):
        await journal.append(0, [half], [batch(payload=half)])

    assert caught.value.size_bytes > caught.value.size_bytes_max == APPEND_BYTES_MAX
    await journal.append(0, [half])
    assert await read_all(journal) == [half]


async def test_cancelling_the_caller_does_not_cancel_the_append(engine: Engine) -> None:
    journal = await claimed(engine)
    append = asyncio.ensure_future(journal.append(0, [b"zero"]))
    await asyncio.sleep(0)

    append.cancel()
    await asyncio.gather(append, return_exceptions=True)
    await journal.append(1, [b"one"])

    assert await read_all(journal) == [b"zero", b"one"]


async def test_closed_handle_refuses_and_closes_twice(engine: Engine) -> None:
    async with await claimed(engine) as journal:
        pass

    await journal.close()
    with pytest.raises(JournalUnknownError):
        await journal.append(0, [b"zero"])


# -- reading ---------------------------------------------------------------------------------------


async def fill(journal: Journal, count: int) -> list[bytes]:
    """Append `count` records of 10 bytes in chunks of 1, 2, 3, 1, 2, 3 …"""
    records = [b"%010d" % number for number in range(count)]
    at = 0
    while at < count:
        size = min(at % 3 + 1, count - at)
        await journal.append(at, records[at : at + size])
        at += size
    return records


async def test_reading_may_start_at_any_offset(engine: Engine) -> None:
    journal = await claimed(engine)
    records = await fill(journal, 20)

    for start in range(21):
        assert await read_all(journal, start) == records[start:]


async def test_pieces_are_bounded_but_never_empty(engine: Engine) -> None:
    journal = await claimed(engine)
    records = await fill(journal, 20)

    for max_bytes in (1, 35, 100):
        pieces = [piece async for piece in journal.read(0, max_bytes=max_bytes)]
        assert all(1 <= len(piece) <= max(3, max_bytes // 10) for piece in pieces)
        assert [record for piece in pieces for _, record in piece] == records


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_million_records_come_back_in_order(engine: Engine) -> None:
    journal = await claimed(engine, "a")
    for at in range(0, 1_000_000, 5_000):
        await journal.append(at, [b"%020d" % offset for offset in range(at, at + 5_000)])
    await journal.close()

    successor = await engine.open()
    assert (await successor.claim("b")).next_offset == 1_000_000
    at = 0
    async for piece in successor.read(0, max_bytes=1 << 20):
        assert list(piece) == [(offset, b"%020d" % offset) for offset in range(at, at + len(piece))]
        at += len(piece)
    assert at == 1_000_000


# -- snapshots -------------------------------------------------------------------------------------


async def test_a_snapshot_takes_the_place_of_earlier_records(engine: Engine) -> None:
    journal = await claimed(engine, "a")
    records = await fill(journal, 20)

    await journal.replace(10, pieces_of([(3, b"three"), (3, b"more")], [(9, b"nine")]))

    for handle in (journal, await engine.open()):
        claim = await handle.claim("a")
        assert (claim.first_offset, claim.next_offset, claim.has_snapshot) == (10, 20, True)
        assert await entries_of(handle.read_snapshot()) == [
            (3, b"three"),
            (3, b"more"),
            (9, b"nine"),
        ]
        assert await read_all(handle, 10) == records[10:]


async def test_journal_goes_on_after_a_snapshot_of_everything(engine: Engine) -> None:
    journal = await claimed(engine, "a")
    await fill(journal, 5)

    await journal.replace(5, pieces_of([(4, b"all")]))
    await journal.append(5, [b"five"])

    successor = await engine.open()
    assert (await successor.claim("b")).next_offset == 6
    assert await read_all(successor, 5) == [b"five"]


async def test_empty_snapshot_is_a_snapshot(engine: Engine) -> None:
    journal = await claimed(engine)
    await fill(journal, 5)

    await journal.replace(5, pieces_of())

    assert (await journal.claim("token")).has_snapshot
    assert await entries_of(journal.read_snapshot()) == []


async def test_later_snapshot_replaces_the_earlier_one(engine: Engine) -> None:
    journal = await claimed(engine)
    await fill(journal, 9)
    await journal.replace(3, pieces_of([(0, b"a")], [(1, b"b")]))

    await journal.replace(6, pieces_of([(5, b"c")]))

    assert (await journal.claim("token")).first_offset == 6
    assert await entries_of(journal.read_snapshot()) == [(5, b"c")]


async def test_snapshot_that_breaks_off_leaves_the_journal_as_it_was(engine: Engine) -> None:
    journal = await claimed(engine)
    records = await fill(journal, 9)
    await journal.replace(3, pieces_of([(0, b"first")]))

    async def broken() -> AsyncIterator[Piece]:
        yield [(4, b"second")]
        raise LookupError

    with pytest.raises(LookupError):
        await journal.replace(6, broken())

    assert (await journal.claim("token")).first_offset == 3
    assert await entries_of(journal.read_snapshot()) == [(0, b"first")]
    assert await read_all(journal, 3) == records[3:]
    await journal.replace(6, pieces_of([(5, b"third")]))
    assert await entries_of(journal.read_snapshot()) == [(5, b"third")]


async def test_piece_over_the_limit_drops_the_snapshot_and_the_handle_lives(
    engine: Engine,
) -> None:
    journal = await claimed(engine)
    await fill(journal, 3)

    with pytest.raises(JournalTooLargeError):
        await journal.replace(3, pieces_of([(0, bytes(APPEND_BYTES_MAX + 1))]))

    await journal.append(3, [b"three"])
    assert not (await journal.claim("token")).has_snapshot


async def test_appends_go_on_while_a_snapshot_is_written(engine: Engine) -> None:
    journal = await claimed(engine)
    await journal.append(0, [b"zero"])

    async def appending() -> AsyncIterator[Piece]:
        for at in range(1, 6):
            await journal.append(at, [b"%d" % at])
            yield [(0, b"zero")]

    await journal.replace(1, appending())

    assert await read_all(journal, 1) == [b"1", b"2", b"3", b"4", b"5"]
    assert len(await entries_of(journal.read_snapshot())) == 5


# -- identity --------------------------------------------------------------------------------------


async def test_journal_of_another_service_is_refused(engine: Engine) -> None:
    await engine.open(service="coordinator")

    with pytest.raises(JournalOpenError, match="belongs to the service 'coordinator'"):
        await engine.open(service="broker")


async def test_journal_of_another_cluster_is_refused(engine: Engine) -> None:
    await engine.open(cluster_id="one")

    assert (await engine.open()).cluster_id == "one"
    with pytest.raises(JournalOpenError, match="belongs to the cluster 'one', not 'two'"):
        await engine.open(cluster_id="two")


async def test_cluster_id_can_be_set_later_and_never_changed(engine: Engine) -> None:
    assert (await engine.open()).cluster_id is None
    journal = await claimed(engine)

    await journal.set_cluster_id("one")
    await journal.set_cluster_id("one")

    assert journal.cluster_id == "one"
    with pytest.raises(JournalOpenError):
        await journal.set_cluster_id("two")
    assert (await engine.open()).cluster_id == "one"


async def test_notes_are_kept_and_replaced(engine: Engine) -> None:
    assert (await engine.open()).note("refused") == ""
    journal = await claimed(engine)

    await journal.set_note("refused", "it is old")
    await journal.set_note("refused", "it is older")

    assert journal.note("refused") == "it is older"
    assert (await engine.open()).note("refused") == "it is older"
    assert (await engine.open()).note("another") == ""


async def test_free_space_is_above_a_reserve_of_nothing_if_it_is_known(engine: Engine) -> None:
    journal = await engine.open()

    free_bytes = journal.free_bytes()
    assert free_bytes is None or free_bytes > 0
    assert journal.shortage() is None
