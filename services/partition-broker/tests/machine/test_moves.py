"""Moving a partition: who serves it at each step, and that the new leader knows all the old did."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from broker_harness import (
    BROKER_ID,
    ORDERS,
    OTHER,
    OTHER_BROKER_ID,
    PLAIN,
    PRODUCER,
    BrokerHarness,
    at,
    header,
    image,
    outcome,
    topic,
)
from msgspec.structs import replace

from semel_broker.machine.moves import Copy, HandedOver, Move
from semel_broker.machine.records import LogDropped, LogState, ProducerState, Record
from semel_common.errors import (
    CorruptMessageError,
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceNumberError,
    SemelError,
    TransactionCoordinatorFencedError,
)
from semel_common.ids import TopicPartition
from semel_runtime.cluster.metadata_image import PartitionLeader

PARTITION = TopicPartition(ORDERS, 0)


@dataclass(slots=True)
class TwoBrokers:
    """Partition 0 of `orders`, led by the one broker, and another one to which it may move."""

    old: BrokerHarness = field(default_factory=BrokerHarness)
    new: BrokerHarness = field(default_factory=lambda: BrokerHarness(broker_id=OTHER_BROKER_ID))
    version: int = 1

    def announce(
        self, *leaders: PartitionLeader, configs: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Let both know who leads the partitions."""
        self.version += 1
        orders = replace(topic("orders", configs=configs), partitions=leaders)
        for broker in (self.old, self.new):
            broker.apply_metadata(image(self.version, orders))

    def begin(self, *, epoch: int = 0, configs: tuple[tuple[str, str], ...] = ()) -> None:
        """Let the partition move."""
        self.announce(PartitionLeader(BROKER_ID, epoch, OTHER_BROKER_ID), configs=configs)

    def give_up(self, *, epoch: int = 1) -> None:
        """Let it stay where it is."""
        self.announce(PartitionLeader(BROKER_ID, epoch))

    def complete(self, *, epoch: int = 1) -> None:
        """Make the new broker the leader."""
        self.announce(PartitionLeader(OTHER_BROKER_ID, epoch))

    def copy_of(self) -> Copy:
        """The copy at the new broker."""
        (copy,) = self.new.run(self.new.machine.moves.copies())
        return copy

    def copy(self) -> None:
        """Copy all that is there now."""
        copy = self.copy_of()
        plan = self.old.run(self.old.machine.moves.copy_log(copy.move, copy.log_end_offset))
        self.new.run(self.new.machine.moves.log_copied(copy, (), plan.upto))

    def hand_over(self) -> HandedOver:
        """Ask the old leader for the partition."""
        move = self.copy_of().move
        self.old.run(self.old.machine.moves.hand_over_log(move))
        return self.old.machine.moves.handed_over(move)

    def take_over(self, entities: Sequence[Record], *, whole: bool = True) -> None:
        """Let the new broker know what was handed over."""
        copy = self.copy_of()
        self.new.run(
            self.new.machine.moves.log_taken_over(
                copy, entities, whole=whole, now_ms=self.new.now_ms
            )
        )

    def move(self) -> None:
        """Take every step."""
        self.begin()
        self.copy()
        state = self.hand_over()
        self.copy()
        self.take_over(state.entities)
        self.complete()


@pytest.fixture
def brokers() -> TwoBrokers:
    """Two brokers, the partition at the first."""
    made = TwoBrokers()
    made.give_up(epoch=0)
    return made


def test_the_old_leader_serves_while_the_log_is_copied(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.begin()
    assert brokers.old.append(sequence=1) == 1
    brokers.copy()
    assert brokers.old.append(sequence=2) == 2
    assert brokers.old.end_offset == 3
    with pytest.raises(NotLeaderOrFollowerError, match="broker 1 leads partition 0"):
        brokers.new.append()


def test_no_broker_serves_between_hand_over_and_the_controllers_word(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.begin()
    brokers.copy()
    state = brokers.hand_over()
    with pytest.raises(NotLeaderOrFollowerError, match="handed over to broker 2"):
        brokers.old.append(sequence=1)
    (refusal,) = brokers.old.mark(outcome())
    assert isinstance(refusal, NotLeaderOrFollowerError)
    brokers.take_over(state.entities)
    for broker in (brokers.old, brokers.new):
        with pytest.raises(NotLeaderOrFollowerError):
            broker.plan()
    brokers.complete()
    assert brokers.new.append(sequence=1) == 1


def test_an_open_transaction_goes_on_and_ends_at_the_new_leader(brokers: TwoBrokers) -> None:
    brokers.old.append(count=3)
    brokers.old.append(producer_id=PLAIN)
    brokers.move()
    assert brokers.new.last_stable_offset == 0
    assert brokers.new.append(sequence=3) == 4
    brokers.new.abort()
    assert brokers.new.last_stable_offset == brokers.new.end_offset == 6
    assert brokers.new.aborted_offsets() == [0, 1, 2, 3, 4, 5]


def test_what_was_aborted_before_the_move_stays_aborted(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.old.abort()
    brokers.move()
    assert brokers.new.aborted_offsets() == [0, 1]


def test_a_repeat_is_known_and_a_gap_refused_at_the_new_leader(brokers: TwoBrokers) -> None:
    brokers.old.append(count=2)
    brokers.old.append(sequence=2)
    brokers.move()
    assert brokers.new.append(sequence=2) == 2
    with pytest.raises(OutOfOrderSequenceNumberError):
        brokers.new.append(sequence=4)
    with pytest.raises(OutOfOrderSequenceNumberError, match="was used for something else"):
        brokers.new.produce(header(sequence=2, crc32c=99))


def test_a_fenced_producer_stays_fenced(brokers: TwoBrokers) -> None:
    brokers.old.mark(outcome(epoch=3))
    brokers.move()
    with pytest.raises(InvalidProducerEpochError, match="below the fence 4"):
        brokers.new.append(epoch=3)


def test_a_deposed_coordinator_stays_deposed(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.old.commit(coordinator_epoch=7)
    brokers.move()
    brokers.new.append(epoch=1)
    (refusal,) = brokers.new.mark(outcome(epoch=1, coordinator_epoch=6))
    assert isinstance(refusal, TransactionCoordinatorFencedError)


def test_the_newest_coordinator_that_the_new_leader_knows_counts(brokers: TwoBrokers) -> None:
    brokers.announce(PartitionLeader(BROKER_ID, 0), PartitionLeader(OTHER_BROKER_ID, 0))
    brokers.new.append(partition=1)
    brokers.new.commit(partition=1, coordinator_epoch=9)
    brokers.old.append()
    brokers.old.commit(coordinator_epoch=7)
    brokers.announce(PartitionLeader(BROKER_ID, 0, OTHER_BROKER_ID), PartitionLeader(2, 0))
    brokers.copy()
    brokers.take_over(brokers.hand_over().entities)
    (refusal,) = brokers.new.mark(outcome(partition=1, epoch=1, coordinator_epoch=8))
    assert isinstance(refusal, TransactionCoordinatorFencedError)


def test_the_old_leader_drops_what_another_one_leads(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.move()
    dropped = [record for _, record in brokers.old.journal if isinstance(record, LogDropped)]
    assert dropped[-1].log_id == 0
    with pytest.raises(NotLeaderOrFollowerError, match="broker 2 leads partition 0"):
        brokers.old.plan()


def test_a_move_that_is_given_up_leaves_everything_as_it_was(brokers: TwoBrokers) -> None:
    brokers.old.append()
    before = brokers.old.entities()
    brokers.begin()
    brokers.copy()
    copy = brokers.copy_of()
    brokers.hand_over()
    brokers.give_up()
    assert brokers.old.append(sequence=1) == 1
    assert brokers.new.run(brokers.new.machine.moves.copies()) == []
    assert [entity for entity in brokers.new.entities() if isinstance(entity, LogState)] == []
    with pytest.raises(FencedLeaderEpochError):
        brokers.new.run(brokers.new.machine.moves.log_copied(copy, (), 5))
    with pytest.raises(NotLeaderOrFollowerError):
        brokers.old.run(brokers.old.machine.moves.hand_over_log(copy.move))
    assert [type(each) for each in before] == [type(entity) for entity in brokers.old.entities()]


def test_a_move_that_begins_again_copies_again(brokers: TwoBrokers) -> None:
    brokers.old.append(count=4)
    brokers.begin()
    brokers.copy()
    first = brokers.copy_of()
    brokers.begin(epoch=1)
    again = brokers.copy_of()
    assert (first.log_end_offset, again.log_end_offset) == (4, 0)
    assert again.log_id != first.log_id
    assert again.move.leader_epoch == 1


def test_it_comes_back_to_a_broker_that_has_missed_all_of_it(brokers: TwoBrokers) -> None:
    brokers.old.append(count=4)
    brokers.version += 5
    back = PartitionLeader(OTHER_BROKER_ID, 1, BROKER_ID)
    orders = replace(topic("orders"), partitions=(back,))
    brokers.old.apply_metadata(image(brokers.version, orders))
    (copy,) = brokers.old.run(brokers.old.machine.moves.copies())
    assert (copy.leader_id, copy.log_end_offset) == (OTHER_BROKER_ID, 0)


@pytest.mark.parametrize(
    "move",
    [
        Move(partition=PARTITION, leader_epoch=1, moving_to=OTHER_BROKER_ID),
        Move(partition=PARTITION, leader_epoch=0, moving_to=3),
    ],
    ids=["another epoch", "another broker"],
)
def test_no_other_broker_may_copy_or_take_a_log(brokers: TwoBrokers, move: Move) -> None:
    brokers.begin()
    for ask in (
        lambda: brokers.old.machine.moves.copy_log(move, 0),
        lambda: brokers.old.machine.moves.hand_over_log(move),
    ):
        with pytest.raises(NotLeaderOrFollowerError, match="does not move from here to broker"):
            ask()


def test_a_copy_that_is_not_whole_is_not_taken_for_the_log(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.begin()
    with pytest.raises(CorruptMessageError, match="ends at offset 0, the log at 1"):
        brokers.take_over(brokers.hand_over().entities)


def test_an_entry_that_is_no_part_of_a_state_is_not_taken(brokers: TwoBrokers) -> None:
    brokers.begin()
    with pytest.raises(CorruptMessageError, match="LogDropped is no part of a log's state"):
        brokers.take_over([LogDropped(log_id=0)])


def test_what_was_taken_over_as_a_whole_stays_as_it_is(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.begin()
    brokers.copy()
    state = brokers.hand_over()
    assert not brokers.copy_of().whole
    brokers.take_over(state.entities)
    assert brokers.copy_of().whole
    with pytest.raises(FencedLeaderEpochError, match="does not move here any more"):
        brokers.take_over(state.entities[:1], whole=False)
    brokers.complete()
    assert brokers.new.append(sequence=1) == 1


def test_a_log_that_moves_is_not_compacted(brokers: TwoBrokers) -> None:
    options = (("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0"))
    brokers.announce(PartitionLeader(BROKER_ID, 0), configs=options)
    brokers.old.append()
    brokers.old.abort()
    (plan,) = brokers.old.run(brokers.old.machine.compaction.logs_to_compact())
    end = replace(brokers.old.machine._logs.log(plan.log_id).compacted, upto=2)
    brokers.begin(configs=options)
    assert brokers.old.run(brokers.old.machine.compaction.logs_to_compact()) == []
    assert not brokers.old.machine.compaction.is_compacted(plan.log_id)
    brokers.old.run(brokers.old.machine.compaction.compacted(end))
    assert brokers.old.aborted_offsets() == [0, 1]


def test_a_copy_is_nobodys_business_but_the_moves(brokers: TwoBrokers) -> None:
    brokers.old.append()
    brokers.begin()
    brokers.copy()
    brokers.take_over(brokers.hand_over().entities)
    for broker in (brokers.old, brokers.new):
        broker.now_ms += 3_600_000
        assert broker.due() == []
        assert broker.forget() == 0
        assert list(broker.machine.descriptions.standing()) == []
        assert (
            broker.run(broker.machine.transactions.open_transactions(open_since_ms=10**15, limit=9))
            == []
        )


def test_producers_are_idle_from_the_move_on_by_the_new_leaders_clock(brokers: TwoBrokers) -> None:
    expiration_ms = brokers.new.limits.producer_expiration_ms
    brokers.old.append(transactional=False)
    brokers.new.now_ms = brokers.old.now_ms + expiration_ms
    brokers.move()
    assert brokers.new.forget(after_ms=expiration_ms - 1) == 0
    assert brokers.new.forget(after_ms=1) == 1


def test_after_any_history_the_new_leader_knows_what_the_old_one_knew() -> None:
    for seed in range(150):
        chance = random.Random(seed)
        brokers = TwoBrokers()
        brokers.give_up(epoch=0)
        _live(brokers.old, chance, steps=chance.randrange(25))
        brokers.begin()
        for _ in range(chance.randrange(3)):
            brokers.copy()
            _live(brokers.old, chance, steps=chance.randrange(8))
            _restart(chance, brokers.old, brokers.new)
        state = brokers.hand_over()
        _restart(chance, brokers.old, brokers.new)
        assert brokers.hand_over() == state, f"seed {seed}: it changes after it was handed over"
        brokers.copy()
        _take_in_pieces(brokers, state.entities, chance)
        brokers.complete()
        _restart(chance, brokers.new)
        (log,) = brokers.new.machine._logs
        known = [replace(each, log_id=0) for each in list(log.snapshot())[1:]]
        expected = [
            replace(entity, last_timestamp_ms=brokers.new.now_ms)
            if isinstance(entity, ProducerState)
            else entity
            for entity in state.entities[1:]
            if hasattr(entity, "log_id")
        ]
        key = repr
        assert sorted(known, key=key) == sorted(expected, key=key), f"seed {seed}"
        assert log.log_end_offset == state.log_end_offset


def _live(broker: BrokerHarness, chance: random.Random, *, steps: int) -> None:
    for _ in range(steps):
        broker.now_ms += chance.randrange(100)
        producer_id = chance.choice((PRODUCER, OTHER, PLAIN))
        epoch = chance.randrange(3)
        with suppress(SemelError):
            if chance.random() < 0.6:
                state = broker.machine._logs.log(0).producer(producer_id)
                newest = epoch == state.producer_epoch
                broker.produce(
                    header(
                        producer_id=producer_id,
                        epoch=epoch,
                        sequence=state.expected_sequence if newest else 0,
                        count=chance.randrange(1, 4),
                        transactional=chance.random() < 0.8,
                    ),
                    name=at(0),
                )
            elif chance.random() < 0.8:
                broker.mark(
                    outcome(
                        producer_id=producer_id,
                        epoch=epoch,
                        commit=chance.random() < 0.5,
                        coordinator_epoch=chance.choice((1, 1, 2)),
                    )
                )
            else:
                broker.delete_records(chance.choice((None, 1, 3)))


def _restart(chance: random.Random, *brokers: BrokerHarness) -> None:
    for broker in brokers:
        if chance.random() < 0.3:
            broker.machine = broker.restored() if chance.random() < 0.5 else broker.replayed()


def _take_in_pieces(brokers: TwoBrokers, entities: Sequence[Record], chance: random.Random) -> None:
    """Take over some, begin again, and take over all, piece by piece."""
    brokers.take_over(entities[: chance.randrange(1, len(entities) + 1)], whole=False)
    size = chance.randrange(1, 5)
    for first in range(0, len(entities), size):
        _restart(chance, brokers.new)
        whole = first + size >= len(entities)
        brokers.take_over(entities[first : first + size], whole=whole)
