"""The three services: their real machines, fed with messages as their handlers would feed them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from exploration.messages import (
    BROKER,
    GROUP,
    Ask,
    Claim,
    Complete,
    End,
    Ended,
    Init,
    InitDone,
    Marker,
    MarkerDone,
    Message,
    Register,
    Tick,
    Told,
    Write,
    Written,
)
from semel_broker.loops import inquiry as broker_inquiry
from semel_broker.machine import BrokerMachine, LogLimits
from semel_broker.machine.records import BatchAppended, MarkerAppended
from semel_broker.machine.values import BatchHeader, Outcome, PartitionName, ProducePartition
from semel_common.errors import SemelError
from semel_common.ids import (
    GroupId,
    Participant,
    TopicPartition,
    partition_for_id,
    producer_id_counters_start,
    producer_id_of,
)
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    HistoryLimits,
    InitProducerId,
    Inquiry,
    InquiryOutcome,
    Producer,
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
    in_order,
)
from semel_coordinator.transactions.machine.state.transitions import TransactionState
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.records import TransactionEnded, TransactionNeverGiven, TxnOffsetsCommitted
from semel_group.machine.values import (
    Committer,
    NewOffset,
    TopicName,
    Transaction,
    TransactionResult,
    TxnMarker,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, Layout, PartitionLeader, Topic
from semel_runtime.machine import Result
from semel_runtime.participant import inquiry

ID = "id"
TIMEOUT_MS = 1_000
EARLY_MS = 1
_LIMITS = TransactionLimits(history=HistoryLimits(entries_max=0))
"""What has ended answers no call that is explored: it would only make more states."""
LATE_MS = EARLY_MS + TIMEOUT_MS
TICK_MS = LATE_MS + TIMEOUT_MS
"""When participants ask, and the time passes: older transactions have timed out by then."""
CLUSTER_ID = "cluster"
PRODUCER_ID = producer_id_of(partition_for_id(ID, 1), producer_id_counters_start(CLUSTER_ID) + 1)
TOPIC = Topic(topic_id="topic-id", name="topic", partitions=(PartitionLeader(0, 0),))
PLACE = TopicPartition(TOPIC.topic_id, 0)
NAMED: dict[str, Participant] = {BROKER: PLACE, GROUP: GroupId("group")}
_NAMES = {participant: name for name, participant in NAMED.items()}
_IMAGE = ClusterImage(
    cluster_id=CLUSTER_ID,
    version=1,
    layout=Layout(
        transaction_log_partitions=1, coordinators=1, group_partitions=1, group_coordinators=1
    ),
    instances=(),
    topics=(TOPIC,),
)

Decided = tuple[Sequence[Any], tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a record states of an epoch, for good."""

    what: Literal["decided", "current", "written", "ended"]
    epoch: int
    participants: tuple[str, ...] = ()
    """With "decided": the participants that commit."""
    committed: bool = False
    """With "ended"."""


class ViolationError(AssertionError):
    """Something happened that must never happen."""


class Service(Protocol):
    """One kind of service."""

    def boot(self) -> Any:
        """Return a machine that knows its cluster, and nothing else."""
        ...

    def decide(self, machine: Any, message: Message) -> Decided:
        """Return records, and the answers that leave once they are durable."""
        ...

    def facts(self, record: Any) -> Iterable[Fact]:
        """Return the facts that a record states for good."""
        ...


class Coordinator:
    """The transaction coordinator."""

    def boot(self) -> TransactionsMachine:
        """See `Service`."""
        copy = ClusterCopy()
        copy.replay(0, _IMAGE)
        return TransactionsMachine(instance_id=0, cluster=copy, limits=_LIMITS)

    def decide(self, machine: TransactionsMachine, message: Message) -> Decided:
        """See `Service`."""
        match message:
            case Claim():
                return machine.claim().records, ()
            case Tick():
                return machine.tick(TICK_MS).records, ()
            case Complete(epoch):
                return machine.markers.complete_txn([_key(epoch)], now_ms=EARLY_MS).records, ()
            case Init():
                return self._init(machine, message)
            case Register(epoch, participant):
                try:
                    result = machine.add_partitions_to_txn(
                        ID, _key(epoch), (NAMED[participant],), now_ms=EARLY_MS
                    )
                except SemelError:
                    return (), ()
                return result.records, ()
            case End():
                return self._end(machine, message)
            case Ask():
                return self._ask(machine, message)
            case _:
                raise AssertionError(message)

    def facts(self, record: Any) -> Iterable[Fact]:
        """State the participants that commit in each epoch, and the latest epoch."""
        match record:
            case DecidedTransaction(producer_epoch=epoch, state=state):
                commits = state is TransactionState.PREPARE_COMMIT
                named = tuple(sorted(_NAMES[each] for each in record.committing))
                yield Fact("decided", epoch, named if commits else ())
            case Producer(producer_epoch=epoch):
                yield Fact("current", epoch)
            case _:
                pass

    def markers(self, machine: TransactionsMachine) -> list[Marker]:
        """Return all markers that are to be sent."""
        coordinator_epoch = machine.markers.serving()[0]
        return [
            Marker(decided.producer_epoch, _NAMES[each], commit, coordinator_epoch)
            for decided in machine.markers.pending()
            for commit, those in ((True, decided.committing), (False, decided.aborting))
            for each in those
        ]

    def _init(self, machine: TransactionsMachine, message: Init) -> Decided:
        call = InitProducerId(
            transactional_id=ID,
            instance_id=f"instance-{message.instance}",
            init_number=1,
            timeout_ms=TIMEOUT_MS,
        )
        try:
            result = machine.init_producer_id(call, now_ms=EARLY_MS)
        except SemelError:
            return (), (InitDone(message.instance, None),)
        return result.records, (InitDone(message.instance, result.response.producer_epoch),)

    def _end(self, machine: TransactionsMachine, message: End) -> Decided:
        try:
            result = machine.end_txn(
                ID,
                _key(message.epoch),
                commit=message.commit,
                participants=in_order(NAMED[each] for each in message.participants),
                now_ms=EARLY_MS,
            )
        except SemelError as error:
            outcome = error.details.get("outcome")
            committed = None if outcome is None else outcome == "COMMITTED"
            following = error.details.get("next_epoch")
            next_epoch = None if following is None else int(following)
            return (), (_ended(message, committed=committed, next_epoch=next_epoch),)
        next_epoch = result.response.producer_epoch
        answer = _ended(message, committed=message.commit, next_epoch=next_epoch)
        return result.records, (answer,)

    def _ask(self, machine: TransactionsMachine, message: Ask) -> Decided:
        asked = Inquiry(key=_key(message.epoch), participant=NAMED[message.participant])
        result = machine.inquire_transactions([asked], now_ms=LATE_MS)
        (answer,) = result.response
        if answer.outcome in (InquiryOutcome.ONGOING, InquiryOutcome.LATER):
            return result.records, ()
        never = answer.outcome is InquiryOutcome.NEVER_GIVEN
        told = Told(
            epoch=message.epoch,
            participant=message.participant,
            commit=answer.outcome is InquiryOutcome.COMMITTED,
            coordinator_epoch=answer.coordinator_epoch,
            current_epoch=answer.current_epoch if never else None,
        )
        return result.records, (told,)


class Broker:
    """A broker with one partition."""

    def boot(self) -> BrokerMachine:
        """See `Service`."""
        machine = BrokerMachine(0, LogLimits())
        for record in machine.apply_metadata(_IMAGE).records:
            machine.replay(0, record)
        return machine

    def decide(self, machine: BrokerMachine, message: Message) -> Decided:
        """See `Service`."""
        match message:
            case Write(_, epoch, _):
                name = PartitionName(topic="", topic_id=TOPIC.topic_id, partition=0)
                header = BatchHeader(
                    record_count=1,
                    size_bytes=100,
                    producer_id=PRODUCER_ID,
                    producer_epoch=epoch,
                    base_sequence=0,
                    transactional=True,
                    crc32c=epoch,
                )
                request = ProducePartition(name=name, batches=(header,))
                result = machine.produce([request], now_ms=EARLY_MS)
                taken = not isinstance(result.response[0], SemelError)
                return result.records, (_written(message, taken=taken),)
            case Marker(epoch, participant, commit, coordinator_epoch):
                outcome = Outcome(
                    partition=PLACE,
                    producer_id=PRODUCER_ID,
                    producer_epoch=epoch,
                    committed=commit,
                    coordinator_epoch=coordinator_epoch,
                )
                closed = machine.transactions.write_txn_markers([outcome], now_ms=EARLY_MS)
                refused = closed.response[0] is not None
                return closed.records, () if refused else (MarkerDone(epoch, participant),)
            case Told():
                outcomes = [broker_inquiry._outcome(_answer(PLACE, message))]
                return machine.transactions.write_txn_markers(outcomes, now_ms=EARLY_MS).records, ()
            case _:
                raise AssertionError(message)

    def facts(self, record: Any) -> Iterable[Fact]:
        """Say which epochs are written and ended."""
        match record:
            case BatchAppended(producer_epoch=epoch):
                yield Fact("written", epoch)
            case MarkerAppended(producer_epoch=epoch, committed=committed, current_epoch=None):
                yield Fact("ended", epoch, committed=committed)
            case _:
                pass

    def open_epochs(self, machine: BrokerMachine) -> list[int]:
        """Return the transactions that are open."""
        due = machine.transactions.transactions_to_inquire(now_ms=EARLY_MS + 1_000_000).response
        return [each.producer_epoch for each in due]


class Group:
    """A group coordinator with one group."""

    def boot(self) -> GroupMachine:
        """See `Service`."""
        machine = GroupMachine(0, GroupLimits())
        machine.cluster.replay(0, _IMAGE)
        return machine

    def decide(self, machine: GroupMachine, message: Message) -> Decided:
        """See `Service`."""
        match message:
            case Write(_, epoch, _):
                offset = NewOffset(
                    topic=TopicName("", TOPIC.topic_id), partition=0, committed_offset=epoch
                )
                try:
                    result: Result[None, Any] = machine.committed_offsets.txn_offset_commit(
                        Committer(group_id="group"),
                        Transaction(PRODUCER_ID, epoch),
                        0,
                        [offset],
                        now_ms=EARLY_MS,
                    )
                except SemelError:
                    return (), (_written(message, taken=False),)
                return result.records, (_written(message, taken=True),)
            case Marker(epoch, participant, commit, coordinator_epoch):
                marker = TxnMarker(
                    transaction=Transaction(PRODUCER_ID, epoch),
                    result=TransactionResult.COMMIT if commit else TransactionResult.ABORT,
                    coordinator_epoch=coordinator_epoch,
                    group_ids=("group",),
                )
                closed = machine.transactions.write_txn_markers(
                    CLUSTER_ID, [marker], now_ms=EARLY_MS
                )
                refused = bool(closed.response[0])
                return closed.records, () if refused else (MarkerDone(epoch, participant),)
            case Told():
                answers = [_answer(GroupId("group"), message)]
                return machine.transactions.apply_inquiry_answers(
                    answers, now_ms=EARLY_MS
                ).records, ()
            case _:
                raise AssertionError(message)

    def facts(self, record: Any) -> Iterable[Fact]:
        """Say which epochs are written and ended."""
        match record:
            case TxnOffsetsCommitted(producer_epoch=epoch):
                yield Fact("written", epoch)
            case TransactionEnded(producer_epoch=epoch, committed=committed):
                yield Fact("ended", epoch, committed=committed)
            case TransactionNeverGiven():
                raise ViolationError(f"an epoch that was given out is taken for made up: {record}")
            case _:
                pass

    def open_epochs(self, machine: GroupMachine) -> list[int]:
        """Return the transactions that are open."""
        due = machine.transactions.transactions_to_inquire(now_ms=EARLY_MS + 1_000_000).response
        return [each.producer_epoch for each in due]


def _key(epoch: int) -> TransactionKey:
    return TransactionKey(PRODUCER_ID, epoch)


def _written(message: Write, *, taken: bool) -> Written:
    return Written(message.instance, message.epoch, message.participant, taken)


def _ended(message: End, *, committed: bool | None, next_epoch: int | None) -> Ended:
    return Ended(message.instance, message.epoch, message.commit, committed, next_epoch)


def _answer(participant: Any, told: Told) -> inquiry.InquiryAnswer[Any]:
    if told.current_epoch is not None:
        outcome = inquiry.InquiryOutcome.NEVER_GIVEN
    else:
        committed, aborted = inquiry.InquiryOutcome.COMMITTED, inquiry.InquiryOutcome.ABORTED
        outcome = committed if told.commit else aborted
    return inquiry.InquiryAnswer(
        transaction=inquiry.OpenTransactionAt(participant, PRODUCER_ID, told.epoch),
        outcome=outcome,
        coordinator_epoch=told.coordinator_epoch,
        current_epoch=told.current_epoch or 0,
    )
