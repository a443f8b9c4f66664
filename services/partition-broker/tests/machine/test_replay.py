"""The journal is the state: any prefix replayed, and any snapshot restored, is the live machine."""

import random
from contextlib import suppress

import pytest
from broker_harness import (
    BROKER_ID,
    OTHER,
    OTHER_BROKER_ID,
    PLAIN,
    PRODUCER,
    BrokerHarness,
    entities,
    header,
    image,
    outcome,
    rebuilt,
    topic,
)
from hypothesis import given
from hypothesis import strategies as st

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine, LogLimits
from semel_broker.machine.records import LogCompacted, MarkerAppended
from semel_common.errors import (
    OutOfOrderSequenceNumberError,
    SemelError,
    TransactionCoordinatorFencedError,
)

LIMITS = LogLimits(
    producers_max=3, open_transactions_max=3, open_epochs_max=3, message_max_bytes=1_000
)
SEEDS = st.integers(min_value=0, max_value=2**32 - 1)


def play(seed: int, steps: int = 60) -> BrokerHarness:
    """Do random things, many of them wrong."""
    chance = random.Random(seed)
    broker = BrokerHarness(LIMITS)
    for version in range(2, steps):
        broker.now_ms += chance.choice((0, 1, 200, 9_000))
        kinds = (_produce, _mark, _metadata, _trim, _compact, _forget)
        step = chance.choices(kinds, (60, 30, 3, 3, 3, 2))[0]
        step(broker, chance, version)
    return broker


def _produce(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    del version
    batches = [
        header(
            producer_id=chance.choice((PLAIN, PRODUCER, PRODUCER, OTHER)),
            epoch=chance.randrange(4),
            sequence=chance.choice((0, 0, 1, 2, 3)),
            count=chance.choice((1, 1, 2)),
            transactional=chance.random() < 0.8,
            size_bytes=chance.choice((0, 100, 900, 5_000)),
        )
        for _ in range(chance.choice((1, 1, 2)))
    ]
    try:
        broker.produce(*batches)
    except SemelError:
        return


def _mark(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    del version
    current = chance.choice((None, None, None, 0, 1))
    broker.mark(
        *(
            outcome(
                partition=chance.choice((0, 0, 0, 1, 2)),
                producer_id=chance.choice((PRODUCER, PRODUCER, OTHER)),
                epoch=chance.randrange(4),
                commit=chance.random() < 0.5 and current is None,
                coordinator_epoch=chance.choice((1, 1, 1, 2)),
                current_epoch=current,
            )
            for _ in range(chance.choice((1, 1, 2, 4)))
        )
    )


def _metadata(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    leaders = [chance.choice((BROKER_ID, BROKER_ID, OTHER_BROKER_ID)) for _ in range(3)]
    configs = (
        ("retention.bytes", str(chance.choice((-1, 0, 3_000)))),
        ("segment.bytes", "1024"),
        ("segment.ms", "300"),
    )
    topics = [topic("orders", *leaders, configs=configs)] if chance.random() < 0.7 else []
    broker.apply_metadata(image(version, *topics))
    for log_id in broker.run(broker.machine.dropped_logs())[:1]:
        broker.run(broker.machine.purged(log_id))


def _trim(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    del version
    if chance.random() < 0.5:
        broker.retain()
        return
    with suppress(SemelError):
        broker.delete_records(chance.choice((None, *range(8))))


def _compact(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    del version
    log_id = chance.randrange(3)
    log = broker.machine._logs.get(log_id)
    if log is not None and log.compacted.upto < log.last_stable_offset:
        end = LogCompacted(
            log_id=log_id,
            upto=log.last_stable_offset,
            records_left=chance.randrange(9),
            size_bytes_left=chance.randrange(999),
        )
        broker.run(broker.machine.compaction.compacted(end))


def _forget(broker: BrokerHarness, chance: random.Random, version: int) -> None:
    del version
    broker.forget(after_ms=chance.choice((0, 86_400_000)))


@given(seed=SEEDS, share=st.floats(min_value=0, max_value=1))
def test_any_prefix_replayed_and_then_continued_is_the_live_machine(
    seed: int, share: float
) -> None:
    broker = play(seed)
    count = int(share * len(broker.journal))
    prefix = broker.replayed(count)
    restored = rebuilt(LIMITS, list(prefix.snapshot()))
    assert entities(restored) == entities(prefix)
    for offset, record in broker.journal[count:]:
        restored.replay(offset, record)
    assert entities(restored) == broker.entities() == entities(broker.replayed())
    assert _open_logs(restored) == _open_logs(broker.machine)


@given(seed=SEEDS, share=st.floats(min_value=0, max_value=1))
def test_a_snapshot_does_not_change_when_the_machine_goes_on(seed: int, share: float) -> None:
    broker = play(seed)
    count = int(share * len(broker.journal))
    machine = broker.replayed(count)
    expected, taken = list(machine.snapshot()), machine.snapshot()
    for offset, record in broker.journal[count:]:
        machine.replay(offset, record)
    assert list(taken) == expected


def _open_logs(machine: BrokerMachine) -> list[int]:
    """Return the logs with open transactions, which the machine also keeps apart."""
    found = [log.log_id for log in machine._logs if log.open_transactions]
    assert sorted(machine.transactions._open) == found
    return found


@given(seed=SEEDS)
def test_decisions_change_nothing(seed: int) -> None:
    broker = play(seed, steps=30)
    before = broker.entities()
    chance = random.Random(seed)
    decided = broker.machine.transactions.write_txn_markers(
        [outcome(epoch=chance.randrange(4), coordinator_epoch=9) for _ in range(4)], now_ms=1
    )
    assert decided.response
    assert broker.entities() == before


@given(seed=SEEDS)
def test_what_is_stable_stays_as_it_is(seed: int) -> None:
    """The last stable offset never goes back, and nothing below it becomes aborted later."""
    broker = play(seed)
    machine = rebuilt(LIMITS, [])
    stable: dict[int, int] = {}
    for offset, record in broker.journal:
        machine.replay(offset, record)
        for log in machine._logs:
            lowest = stable.get(log.log_id, 0)
            assert log.last_stable_offset >= lowest
            stable[log.log_id] = log.last_stable_offset
            if isinstance(record, MarkerAppended) and record.log_id == log.log_id:
                assert record.offset >= lowest


@given(seed=SEEDS)
def test_records_keep_their_meaning_on_disk(seed: int) -> None:
    serde = BrokerSerde()
    broker = play(seed)
    for record in [*(record for _, record in broker.journal), *broker.entities()]:
        assert serde.decode(serde.encode(record)) == record


@pytest.mark.parametrize("finish", ["open", "committed", "aborted", "empty"])
def test_c161_a_reloaded_log_has_the_same_stable_offset_and_coordinator_epoch(finish: str) -> None:
    broker = BrokerHarness()
    broker.append(producer_id=PLAIN)
    if finish != "empty":
        broker.append(producer_id=OTHER, count=2)
    if finish != "open":
        ended = outcome(producer_id=OTHER, commit=finish != "aborted", coordinator_epoch=3)
        assert broker.mark(ended) == [None]
    for machine in (broker.replayed(), broker.restored()):
        assert entities(machine) == broker.entities()
        broker.machine = machine
        assert broker.last_stable_offset == (1 if finish == "open" else broker.end_offset)
        (stale,) = machine.transactions.write_txn_markers(
            [outcome(producer_id=OTHER)], now_ms=1
        ).response
        assert isinstance(stale, TransactionCoordinatorFencedError) == (finish != "open")


def test_the_whole_window_of_repeats_survives_a_restart() -> None:
    broker = BrokerHarness()
    for sequence in range(6):
        broker.append(sequence=sequence)
    for machine in (broker.replayed(), broker.restored()):
        broker.machine = machine
        assert [broker.append(sequence=each) for each in range(1, 6)] == [1, 2, 3, 4, 5]
        for each in range(1, 6):
            with pytest.raises(OutOfOrderSequenceNumberError, match="was used for something else"):
                broker.produce(header(sequence=each, crc32c=99))


def test_the_oldest_open_transaction_is_still_the_first_after_a_restart() -> None:
    """Whatever the order of producers and epochs."""
    broker = BrokerHarness()
    broker.append(producer_id=OTHER, epoch=7)
    broker.append(producer_id=PRODUCER, epoch=3)
    for machine in (broker.replayed(), broker.restored()):
        broker.machine = machine
        assert broker.last_stable_offset == 0


def test_a_record_of_an_unknown_kind_is_refused_when_read() -> None:
    with pytest.raises(ValueError, match="does not know"):
        BrokerSerde().decode(b"")
