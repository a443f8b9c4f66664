"""The checks of the answers of brokers."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeVar

from aiosemel._answers.batch_outcomes import BATCH_OUTCOMES
from aiosemel._answers.fields import (
    INT64_MAX,
    Unfit,
    at_least,
    counted,
    identified,
    is_refused,
    moment,
    one_of,
    paired,
    same,
    within,
)
from aiosemel._answers.registry import Checks
from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.errors_pb2 import ERROR_CODE_BASE_OFFSET_MISMATCH, Error
from semel_common.untrusted_text import natural_number
from semel_common.wire import methods

CHECKS = Checks()


class _Place(Protocol):
    @property
    def topic_id(self) -> str: ...
    @property
    def partition(self) -> int: ...


def in_place(field: str, answered: _Place, asked: _Place) -> None:
    """Check that a result is of the partition that was asked about."""
    if answered.partition != asked.partition:
        same(f"{field}.partition", answered.partition, asked.partition)
    if asked.topic_id and answered.topic_id != asked.topic_id:
        same(f"{field}.topic_id", answered.topic_id, asked.topic_id)


class _Result(Protocol):
    """One partition's result, which may be an error."""

    @property
    def topic_id(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def error(self) -> Error: ...
    def HasField(self, field_name: Literal["error"]) -> bool: ...  # noqa: N802 - protobuf's name


_Asked = TypeVar("_Asked", bound=_Place)
_Answered = TypeVar("_Answered", bound=_Result)


def _accepted(
    asked: Sequence[_Asked], answered: Sequence[_Answered]
) -> Iterator[tuple[_Asked, _Answered]]:
    """Yield each question with its result, errors left out; checks that the two fit."""
    for each, result in paired("partitions", asked, answered):
        in_place("partitions", result, each)
        if not is_refused("partitions", result):
            yield each, result


class _Batch(Protocol):
    @property
    def topic_partition(self) -> _Place: ...
    @property
    def record_count(self) -> int: ...
    @property
    def expected_base_offset(self) -> int | None: ...


def check_produced(batches: Sequence[_Batch], answer: broker.ProduceResponse) -> None:
    """Check the answer to batches, each for another partition; raises ``Unfit``."""
    results = answer.partitions
    if len(results) != len(batches):
        counted("partitions", results, batches)
    for batch, result in zip(batches, results, strict=True):
        place = batch.topic_partition
        if result.partition != place.partition or result.topic_id != place.topic_id:
            in_place("partitions", result, place)
        elif result.HasField("error"):
            is_refused("partitions", result)
            _check_mismatch(result.error)
        else:
            _check_stored(batch, result)


def _check_stored(batch: _Batch, result: broker.ProducePartitionResult) -> None:
    offset = result.base_offset
    if not 0 <= offset <= INT64_MAX - batch.record_count:
        within("partitions.base_offset", offset, 0, INT64_MAX - batch.record_count)
    if batch.expected_base_offset is not None:
        same("partitions.base_offset", offset, batch.expected_base_offset)
    at_least("partitions.log_start_offset", result.log_start_offset)


def _check_mismatch(error: Error) -> None:
    """Check that an append on a condition is told where the log ends."""
    log_end_offset = error.metadata.get("log_end_offset", "")
    is_mismatch = error.code == ERROR_CODE_BASE_OFFSET_MISMATCH
    if is_mismatch and natural_number(log_end_offset) is None:
        raise Unfit("error.metadata.log_end_offset", log_end_offset, "is no offset")


@CHECKS.of(methods.PRODUCE)
def _produce(request: broker.ProduceRequest, answer: broker.ProduceResponse) -> None:
    """Check the answer to a request that can be read; ``check_produced`` is for written ones."""
    for _, result in _accepted(request.partitions, answer.partitions):
        at_least("partitions.base_offset", result.base_offset)
        at_least("partitions.log_start_offset", result.log_start_offset)


@CHECKS.of(methods.FETCH)
def _fetch(request: broker.FetchRequest, answer: broker.FetchResponse) -> None:
    for asked, result in _accepted(request.partitions, answer.partitions):
        _fetched(asked.fetch_offset, result)


def _fetched(fetch_offset: int, result: broker.FetchPartitionResult) -> None:
    end, next_offset = result.high_watermark, result.next_offset
    within("partitions.log_start_offset", result.log_start_offset, 0, end)
    within("partitions.last_stable_offset", result.last_stable_offset, 0, end)
    within("partitions.next_offset", next_offset, fetch_offset, max(fetch_offset, end))
    _check_outcomes(result)
    least = 0
    for batch in result.batches:
        base_offset, count = batch.base_offset, batch.record_count
        if base_offset < least:
            raise Unfit("batches.base_offset", base_offset, f"is below {least}")
        if count < 1:
            raise Unfit("batches.record_count", count, "is below 1")
        least = base_offset + count
        if least <= fetch_offset:
            raise Unfit("batches.base_offset", base_offset, f"is wholly below {fetch_offset}")
    if least > next_offset:
        raise Unfit(
            "partitions.next_offset", next_offset, f"is before the last batch ends, {least}"
        )


def _check_outcomes(result: broker.FetchPartitionResult) -> None:
    outcomes = result.batch_outcomes
    if not outcomes:
        return  # Not asked for, or a broker of an earlier release, which does not tell.
    if len(outcomes) != len(result.batches):
        many = f"is not {len(result.batches)}, the number of batches"
        raise Unfit("number of batch_outcomes", len(outcomes), many)
    for outcome in outcomes:
        one_of("batch_outcomes", outcome, BATCH_OUTCOMES)


@CHECKS.of(methods.LIST_OFFSETS)
def _list_offsets(request: broker.ListOffsetsRequest, answer: broker.ListOffsetsResponse) -> None:
    for asked, result in _accepted(request.partitions, answer.partitions):
        is_end = asked.spec in (broker.OFFSET_SPEC_EARLIEST, broker.OFFSET_SPEC_LATEST)
        at_least("partitions.offset", result.offset, 0 if is_end else -1)
        at_least("partitions.timestamp_ms", result.timestamp_ms, -1)


@CHECKS.of(methods.DELETE_RECORDS)
def _delete_records(
    request: broker.DeleteRecordsRequest, answer: broker.DeleteRecordsResponse
) -> None:
    for _, result in _accepted(request.partitions, answer.partitions):
        at_least("partitions.log_start_offset", result.log_start_offset)
        at_least("partitions.deleted_offsets", result.deleted_offsets)


@CHECKS.of(methods.COUNT_RECORDS)
def _count_records(
    request: broker.CountRecordsRequest, answer: broker.CountRecordsResponse
) -> None:
    for asked, result in _accepted(request.partitions, answer.partitions):
        _counted(asked.from_offset, result)


def _counted(from_offset: int, result: broker.CountRecordsPartitionResult) -> None:
    next_offset = result.next_offset
    at_least("partitions.end_offset", result.end_offset)
    at_least("partitions.next_offset", next_offset, from_offset)
    within("partitions.record_count", result.record_count, 0, next_offset - from_offset)
    at_least("partitions.first_timestamp_ms", result.first_timestamp_ms)
    _progresses(from_offset, result)


def _progresses(
    from_offset: int, result: broker.CountRecordsPartitionResult | producers.PartitionWrites
) -> None:
    """Check that a search which has not come to the end of the log has come further."""
    if result.next_offset == from_offset and result.next_offset < result.end_offset:
        raise Unfit("partitions.next_offset", result.next_offset, "makes no progress")


@CHECKS.of(methods.DESCRIBE_PRODUCERS)
def _describe_producers(
    request: producers.DescribeProducersRequest, answer: producers.DescribeProducersResponse
) -> None:
    for asked, result in paired("partitions", request.partitions, answer.partitions):
        in_place("partitions", result.partition, asked)
        if is_refused("partitions", result):
            continue
        at_least("partitions.high_watermark", result.high_watermark)
        at_least("partitions.last_stable_offset", result.last_stable_offset)
        at_least("partitions.producer_count", result.producer_count)
        for producer in result.producers:
            _producer(producer)


@CHECKS.of(methods.DESCRIBE_WRITES)
def _describe_writes(
    request: producers.DescribeWritesRequest, answer: producers.DescribeWritesResponse
) -> None:
    for asked, result in _accepted(request.partitions, answer.partitions):
        _written(asked.from_offset, result)


def _written(from_offset: int, result: producers.PartitionWrites) -> None:
    next_offset = result.next_offset
    at_least("partitions.next_offset", next_offset, from_offset)
    at_least("partitions.first_offset", result.first_offset, -1)
    within("partitions.last_offset", result.last_offset, result.first_offset, next_offset - 1)
    within("partitions.record_count", result.record_count, 0, next_offset - from_offset)
    within("partitions.marker_offset", result.marker_offset, -1, next_offset - 1)
    at_least("partitions.first_timestamp_ms", result.first_timestamp_ms, -1)
    _progresses(from_offset, result)


def _producer(producer: producers.ProducerDescription) -> None:
    at_least("producers.producer_id", producer.producer_id, 1)
    at_least("producers.producer_epoch", producer.producer_epoch, -1)
    at_least("producers.last_sequence", producer.last_sequence, -1)
    at_least("producers.fence", producer.fence)
    moment("producers.last_timestamp_ms", producer.last_timestamp_ms)
    for open_transaction in producer.open_transactions:
        at_least("open_transactions.producer_epoch", open_transaction.producer_epoch)
        at_least("open_transactions.first_offset", open_transaction.first_offset)
        at_least("open_transactions.age_ms", open_transaction.age_ms)
        moment("open_transactions.start_time_ms", open_transaction.start_time_ms)


@CHECKS.of(methods.LIST_OPEN_TRANSACTIONS)
def _list_open_transactions(
    request: participants.ListOpenTransactionsRequest,
    answer: participants.ListOpenTransactionsResponse,
) -> None:
    if request.limit and len(answer.transactions) > request.limit:
        raise Unfit("number of transactions", len(answer.transactions), f"is over {request.limit}")
    for transaction in answer.transactions:
        _participant(transaction.participant)
        at_least("transactions.producer_id", transaction.producer_id, 1)
        at_least("transactions.producer_epoch", transaction.producer_epoch)
        at_least("transactions.age_ms", transaction.age_ms)
        is_group = transaction.participant.HasField("group_id")
        at_least("transactions.first_offset", transaction.first_offset, -1 if is_group else 0)
        moment("transactions.start_time_ms", transaction.start_time_ms)


def _participant(participant: participants.Participant) -> None:
    match participant.WhichOneof("participant"):
        case "group_id":
            identified("participant.group_id", participant.group_id)
        case "topic_partition":
            identified("participant.topic_id", participant.topic_partition.topic_id)
            at_least("participant.partition", participant.topic_partition.partition)
        case _:
            raise Unfit("participant", "", "is neither a partition nor a group")
