"""Checks and reads every field of every request; each error names the field and its value."""

from collections.abc import Iterable

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.ids import TopicPartition
from semel_common.wire.messages.request_bounds import PRODUCER_IDS_MAX, TRACEPARENT_LENGTH_MAX
from semel_coordinator.transactions.machine import (
    FenceInquiry,
    Inquiry,
    ListFilter,
    TransactionKey,
    TransactionLimits,
    TransactionState,
    in_order,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc.id_patterns import pattern
from semel_coordinator.transactions.rpc.participant_messages import (
    participant_from_wire,
    participants_from_wire,
    topic_partitions_from_wire,
)
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    require_count,
    require_int,
    require_known,
    require_name,
)

_STATES: dict[int, TransactionState] = {
    wire.TRANSACTION_STATE_EMPTY: TransactionState.EMPTY,
    wire.TRANSACTION_STATE_ONGOING: TransactionState.ONGOING,
    wire.TRANSACTION_STATE_PREPARED: TransactionState.PREPARED,
    wire.TRANSACTION_STATE_PREPARE_COMMIT: TransactionState.PREPARE_COMMIT,
    wire.TRANSACTION_STATE_PREPARE_ABORT: TransactionState.PREPARE_ABORT,
    wire.TRANSACTION_STATE_COMPLETE_COMMIT: TransactionState.COMPLETE_COMMIT,
    wire.TRANSACTION_STATE_COMPLETE_ABORT: TransactionState.COMPLETE_ABORT,
}
_WAITS = tuple(wire.WaitFor.values())
_RESULTS = (
    participants_pb2.TRANSACTION_RESULT_COMMIT,
    participants_pb2.TRANSACTION_RESULT_ABORT,
)


def transactional_id(value: str, limits: TransactionLimits) -> str:
    """Check a transactional id."""
    return require_name("transactional_id", value, length_max=limits.transactional_id_length_max)


def instance_id(value: str, limits: TransactionLimits) -> str:
    """Check a producer's instance id."""
    return require_name("instance_id", value, length_max=limits.instance_id_length_max)


def init_number(value: int) -> int:
    """Check the number of an InitProducerId."""
    return require_int("init_number", value, minimum=1)


def group_id(value: str, limits: TransactionLimits) -> str:
    """Check a group id."""
    return require_name("group_id", value, length_max=limits.group_id_length_max)


def wait_for(value: int) -> int:
    """Check the wait's target."""
    return require_known("wait", value, _WAITS)


def result(value: int) -> int:
    """Check a transaction's result."""
    return require_known("result", value, _RESULTS)


def key(
    producer_id: int, producer_epoch: int, epoch_field: str = "producer_epoch"
) -> TransactionKey:
    """Check a producer id and epoch."""
    return TransactionKey(
        require_int("producer_id", producer_id, minimum=1),
        require_int(epoch_field, producer_epoch),
    )


def partitions(
    topics: Iterable[participants_pb2.TopicPartitions], limits: TransactionLimits
) -> list[TopicPartition]:
    """Read the partitions to be registered: at least one."""
    found = topic_partitions_from_wire("topics", topics, limits)
    require_count("topics", found, minimum=1, maximum=limits.participants_max)
    return found


def participants(
    request: wire.EndTxnRequest | wire.PrepareTxnRequest,
    limits: TransactionLimits,
    *,
    commit: bool,
) -> ParticipantSet | None:
    """Read the participants of a transaction that ends or is prepared; None if not given.

    Of an abort, those over the limit are left out rather than refused: they will ask.
    """
    if not request.HasField("participants"):
        return None
    found = participants_from_wire("participants", request.participants, limits)
    if commit:
        require_count("participants", found, maximum=limits.participants_max)
    return in_order(found[: limits.participants_max])


def inquiries(request: wire.InquireTransactionsRequest, limits: TransactionLimits) -> list[Inquiry]:
    """Read what is inquired about."""
    require_count("inquiries", request.inquiries, maximum=limits.inquiries_max)
    return [
        Inquiry(
            key=TransactionKey(
                require_int(f"inquiries[{index}].producer_id", each.producer_id, minimum=1),
                require_int(f"inquiries[{index}].producer_epoch", each.producer_epoch),
            ),
            participant=participant_from_wire(
                f"inquiries[{index}].participant", each.participant, limits
            ),
        )
        for index, each in enumerate(request.inquiries)
    ]


def fence_inquiries(
    request: wire.InquireTransactionsRequest, limits: TransactionLimits
) -> list[FenceInquiry]:
    """Read which producers a participant wants to forget."""
    require_count("fences", request.fences, maximum=limits.inquiries_max)
    return [
        FenceInquiry(
            producer_id=require_int(f"fences[{index}].producer_id", each.producer_id, minimum=1),
            fence=require_int(f"fences[{index}].fence", each.fence),
            participant=participant_from_wire(
                f"fences[{index}].participant", each.participant, limits
            ),
        )
        for index, each in enumerate(request.fences)
    ]


def described_ids(
    request: wire.DescribeTransactionsRequest, limits: TransactionLimits
) -> list[str]:
    """Read the transactional ids to be described."""
    require_count("transactional_ids", request.transactional_ids, maximum=limits.describe_max)
    return [
        require_name(
            f"transactional_ids[{index}]", each, length_max=limits.transactional_id_length_max
        )
        for index, each in enumerate(request.transactional_ids)
    ]


def list_filter(request: wire.ListTransactionsRequest) -> ListFilter:
    """Read which transactional ids are to be listed."""
    require_count("states", request.states, maximum=len(_STATES))
    for index, state in enumerate(request.states):
        require_known(f"states[{index}]", state, tuple(_STATES))
    require_count("producer_ids", request.producer_ids, maximum=PRODUCER_IDS_MAX)
    running_longer_than_ms: int | None = None
    if request.HasField("running_longer_than_ms"):
        running_longer_than_ms = require_int(
            "running_longer_than_ms", request.running_longer_than_ms
        )
    return ListFilter(
        states=frozenset(_STATES[state] for state in request.states),
        producer_ids=frozenset(
            require_int(f"producer_ids[{index}]", each, minimum=1)
            for index, each in enumerate(request.producer_ids)
        ),
        running_longer_than_ms=running_longer_than_ms,
        matches=pattern("transactional_id_pattern", request.transactional_id_pattern),
    )


def traceparent(call: Call) -> str:
    """Return the trace context if it can be one, and is recorded: it is stored."""
    given = call.traceparent
    return "" if len(given) > TRACEPARENT_LENGTH_MAX or given.endswith("-00") else given
