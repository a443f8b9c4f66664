"""The service: the form of every field, durability of answers, waiting, and what operators see."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from google.protobuf.message import Message
from structlog.testing import capture_logs
from transactions_harness import A0, A1, GROUP, TIMEOUT_MS, after
from transactions_service_harness import CALL, Cluster, Coordinator, until

from semel.common.v1 import errors_pb2, participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    CoordinatorLoadInProgressError,
    InconsistentClusterIdError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    RequestTimedOutError,
    SemelError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import TopicPartition
from semel_common.wire.methods import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    INQUIRE_TRANSACTIONS,
    LIST_TRANSACTIONS,
)
from semel_coordinator.transactions.machine import TransactionKey, TransactionLimits
from semel_runtime.server.calls import Call, Handlers

Answer = Callable[[Coordinator, Message], Awaitable[Message]]

ONGOING = wire.TRANSACTION_STATE_ONGOING
COMMIT = participants_pb2.TRANSACTION_RESULT_COMMIT
METHODS = (
    INIT_PRODUCER_ID,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    INQUIRE_TRANSACTIONS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def ask(coordinator: Coordinator, request: Message) -> Message:
    """Give a request to the handler that is registered for it."""
    handlers = Handlers()
    coordinator.service.register(handlers)
    (endpoint,) = (each for each in handlers if each.method.request is type(request))
    return await endpoint.handler(request, CALL)


def topics(*partitions: int, topic_id: str = "topic-a") -> list[participants_pb2.TopicPartitions]:
    return [participants_pb2.TopicPartitions(topic_id=topic_id, partitions=partitions)]


# -- form ---------------------------------------------------------------------------------------


def init(**fields: str | int) -> wire.InitProducerIdRequest:
    given = {
        "transactional_id": "app",
        "instance_id": "one",
        "init_number": 1,
        "transaction_timeout_ms": TIMEOUT_MS,
        "wait": 1,
    } | fields
    return wire.InitProducerIdRequest(**given)  # type: ignore[arg-type]  # what a test gives


def add(**fields: object) -> wire.AddPartitionsToTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "topics": topics(0)} | fields
    return wire.AddPartitionsToTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def offsets(**fields: object) -> wire.AddOffsetsToTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "group_id": "group-g"} | fields
    return wire.AddOffsetsToTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def end(**fields: object) -> wire.EndTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "result": COMMIT} | fields
    return wire.EndTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def end_with(**fields: object) -> wire.EndTxnRequest:
    return end(participants=participants_pb2.Participants(**fields))  # type: ignore[arg-type]  # what a test gives


def inquire(**fields: object) -> wire.InquireTransactionsRequest:
    partition = participants_pb2.TopicPartition(topic_id="topic-a")
    given = {
        "producer_id": 1,
        "participant": participants_pb2.Participant(topic_partition=partition),
    } | fields
    return wire.InquireTransactionsRequest(
        cluster_id="test-cluster",
        inquiries=[wire.Inquiry(**given)],  # type: ignore[arg-type]  # what a test gives
    )


def inquire_of(**fields: object) -> wire.InquireTransactionsRequest:
    return inquire(participant=participants_pb2.Participant(**fields))  # type: ignore[arg-type]  # what a test gives


LIMITS = TransactionLimits(
    participants_max=2,
    transactional_id_length_max=20,
    instance_id_length_max=20,
    topic_id_length_max=20,
    group_id_length_max=20,
    inquiries_max=2,
    describe_max=2,
)
LONG = "x" * 21

BAD_FORM: list[tuple[Message, str]] = [
    (init(transactional_id=""), "transactional_id is empty"),
    (init(transactional_id=LONG), "transactional_id 'x+' has 21 characters: at most 20"),
    (init(instance_id=""), "instance_id is empty"),
    (init(instance_id=LONG), "instance_id 'x+' has 21 characters"),
    (init(init_number=0), "init_number is 0: must be 1 to"),
    (init(wait=7), "wait has the unknown value 7"),
    (add(transactional_id=""), "transactional_id is empty"),
    (add(producer_id=0), "producer_id is 0: must be 1 to"),
    (add(producer_id=-1), "producer_id is -1"),
    (add(producer_epoch=-1), "producer_epoch is -1: must be 0 to"),
    (add(topics=[]), "topics has 0 entries: must be 1 to 2"),
    (add(topics=topics()), "topics has 0 entries"),
    (add(topics=topics(0, 1, 2)), "topics has 3 entries"),
    (add(topics=topics(0, -3)), r"topics\[0\].partitions is -3: must be 0 to"),
    (add(topics=topics(0, topic_id="")), r"topics\[0\].topic_id is empty"),
    (add(topics=topics(0, topic_id=LONG)), r"topics\[0\].topic_id 'x+' has 21"),
    (offsets(transactional_id=""), "transactional_id is empty"),
    (offsets(producer_id=0), "producer_id is 0"),
    (offsets(group_id=""), "group_id is empty"),
    (offsets(group_id=LONG), "group_id 'x+' has 21 characters"),
    (end(transactional_id=""), "transactional_id is empty"),
    (end(producer_id=0), "producer_id is 0"),
    (end(producer_epoch=-2), "producer_epoch is -2"),
    (end(result=0), "result has the unknown value 0"),
    (end(wait=9), "wait has the unknown value 9"),
    (end_with(topics=topics(0, 1), group_ids=["g"]), "participants has 3 entries"),
    (end_with(topics=topics(-1)), r"participants.topics\[0\].partitions is -1"),
    (end_with(group_ids=["g", ""]), r"participants.group_ids\[1\] is empty"),
    (inquire(producer_id=0), r"inquiries\[0\].producer_id is 0"),
    (inquire(producer_epoch=-1), r"inquiries\[0\].producer_epoch is -1"),
    (inquire_of(), r"inquiries\[0\].participant is not given"),
    (inquire_of(group_id=""), r"inquiries\[0\].participant.group_id is empty"),
    (
        inquire_of(topic_partition=participants_pb2.TopicPartition(topic_id="")),
        r"inquiries\[0\].participant.topic_id is empty",
    ),
    (
        inquire_of(topic_partition=participants_pb2.TopicPartition(topic_id="t", partition=-1)),
        r"inquiries\[0\].participant.partition is -1",
    ),
    (
        wire.InquireTransactionsRequest(
            cluster_id="test-cluster", inquiries=list(inquire().inquiries) * 3
        ),
        "inquiries has 3 entries: must be 0 to 2",
    ),
    (
        wire.DescribeTransactionsRequest(transactional_ids=["a", ""]),
        r"transactional_ids\[1\] is empty",
    ),
    (
        wire.DescribeTransactionsRequest(transactional_ids=["a", "b", "c"]),
        "transactional_ids has 3 entries: must be 0 to 2",
    ),
    (
        wire.ListTransactionsRequest(states=[ONGOING, wire.TRANSACTION_STATE_UNSPECIFIED]),
        r"states\[1\] has the unknown value 0",
    ),
    (
        wire.ListTransactionsRequest(running_longer_than_ms=-5),
        "running_longer_than_ms is -5: must be 0 to",
    ),
    (
        wire.ListTransactionsRequest(transactional_id_pattern="a(b"),
        r"transactional_id_pattern 'a\(b' cannot be used: a \( without its \)",
    ),
    (
        wire.ListTransactionsRequest(transactional_id_pattern="a" * 256),
        "transactional_id_pattern 'a+…' has 256 characters",
    ),
]


@pytest.mark.parametrize(
    ("request_", "message"),
    BAD_FORM,
    ids=[f"{number} {type(each).__name__}" for number, (each, _) in enumerate(BAD_FORM)],
)
async def test_bad_form_names_field_and_value_and_stores_nothing(
    cluster: Cluster, request_: Message, message: str
) -> None:
    """C-030, C-056, C-081."""
    async with cluster.coordinator(limits=LIMITS) as coordinator:
        before = coordinator.runner.stats().records
        with pytest.raises(InvalidRequestError, match=message) as caught:
            await ask(coordinator, request_)
        assert caught.value.details["field"] in message.replace("\\", "")
        assert coordinator.runner.stats().records == before


async def test_a_time_out_that_is_not_possible_has_an_error_of_its_own(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InvalidTransactionTimeoutError, match="transaction_timeout_ms is -1"):
            await ask(coordinator, init(transaction_timeout_ms=-1))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (topics(0, topic_id="topic-x"), UnknownTopicIdError),
        (topics(0, 2), UnknownTopicOrPartitionError),
    ],
)
async def test_an_unknown_partition_is_refused_and_no_other_is_registered(
    cluster: Cluster, bad: list[participants_pb2.TopicPartitions], error: type[SemelError]
) -> None:
    """C-063: all are registered, or none."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        with pytest.raises(error):
            await ask(
                coordinator,
                add(producer_id=key.producer_id, topics=[*topics(0, topic_id="topic-b"), *bad]),
            )
        (described,) = coordinator.machine.describe_transactions(["app"]).response
        assert [each.state for each in described.transactions] == ["Empty"]


async def test_an_abort_of_too_many_participants_goes_on_with_fewer(cluster: Cluster) -> None:
    """Those that are left out ask by themselves; the client must not be stuck."""
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        key = await coordinator.init()
        those = [TopicPartition("topic-a", number) for number in range(5)]
        await coordinator.end(key, *those, commit=False)
        (decided,) = coordinator.machine.pending_markers()
        assert list(decided.aborting) == those[:2]


# -- being in charge ----------------------------------------------------------------------------


async def test_nothing_is_answered_before_partitions_are_claimed(cluster: Cluster) -> None:
    """C-035, C-081."""
    async with cluster.coordinator(claim=False, send=False) as coordinator:
        requests = (
            *(init(), add(), offsets(), end(), inquire()),
            *(wire.DescribeTransactionsRequest(), wire.ListTransactionsRequest()),
        )
        for request in requests:
            with pytest.raises(CoordinatorLoadInProgressError):
                await ask(coordinator, request)
        await coordinator.service.claim()
        await ask(coordinator, init())


async def test_every_rpc_has_a_handler(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        handlers = Handlers()
        coordinator.service.register(handlers)
        assert [each.method for each in handlers] == list(METHODS)


async def test_answers_wait_for_the_disk_and_so_do_errors(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.volume.hold()
        asked = [
            asyncio.create_task(coordinator.end(key, A0)),
            asyncio.create_task(ask(coordinator, wire.ListTransactionsRequest())),
            asyncio.create_task(coordinator.end(after(key, 9))),
        ]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(each.done() for each in asked)
        cluster.volume.release()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(results[2], ProducerFencedError)


# -- the way of a transaction -------------------------------------------------------------------


async def test_a_transaction_from_begin_to_end(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await ask(coordinator, add(producer_id=key.producer_id, topics=topics(0, 1)))
        await ask(coordinator, offsets(producer_id=key.producer_id))
        response = await ask(coordinator, end(producer_id=key.producer_id))
        assert response == wire.EndTxnResponse(producer_id=key.producer_id, producer_epoch=1)
        (decided,) = coordinator.machine.pending_markers()
        assert set(decided.committing) == {A0, A1, GROUP}
        assert decided.traceparent == "of call"


async def test_idempotent_producers_get_fresh_ids(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        first = await ask(coordinator, wire.InitProducerIdRequest())
        second = await ask(coordinator, wire.InitProducerIdRequest())
        assert isinstance(first, wire.InitProducerIdResponse)
        assert isinstance(second, wire.InitProducerIdResponse)
        assert 0 < first.producer_id < second.producer_id


async def test_a_trace_context_that_is_none_is_not_stored(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, call=Call(listener="default", traceparent="x" * 100))
        assert coordinator.machine.pending_markers()[0].traceparent == ""


async def test_an_epoch_that_was_never_given_is_logged_as_a_defect(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        with capture_logs() as logs:
            with pytest.raises(ProducerFencedError):
                await coordinator.end(after(key, 3))
            answer = await ask(coordinator, inquire(producer_id=key.producer_id, producer_epoch=3))
        assert isinstance(answer, wire.InquireTransactionsResponse)
        assert answer.answers[0].outcome == wire.INQUIRY_OUTCOME_NEVER_GIVEN
        assert [each["request"] for each in logs] == ["EndTxn", "InquireTransactions"]
        assert {each["log_level"] for each in logs} == {"error"}


# -- waiting for markers ------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [wire.WAIT_FOR_UNSPECIFIED, wire.WAIT_FOR_COMPLETE])
async def test_a_successor_waits_for_the_markers_of_its_predecessor(
    cluster: Cluster, wait: wire.WaitFor.ValueType
) -> None:
    """A repeat while the first one waits gets the same answer."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init(instance="one")
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0)
        await coordinator.end(after(key), A1)
        waiting = [asyncio.create_task(coordinator.init(instance="two", wait=wait))]
        await until(lambda: cluster.broker_1.requests)
        waiting.append(asyncio.create_task(coordinator.init(instance="two", wait=wait)))
        await until(lambda: coordinator.machine.is_complete(after(key)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        assert await coordinator.init(instance="two") == after(key, 3)
        cluster.broker_0.open.set()
        assert await asyncio.gather(*waiting) == [after(key, 3)] * 2


async def test_a_caller_may_wait_until_it_can_read_what_it_wrote(cluster: Cluster) -> None:
    """Its own transaction, not those before it."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0)
        wait = wire.WAIT_FOR_COMPLETE
        assert await coordinator.end(after(key), A1, wait=wait) == after(key, 2)
        assert not coordinator.machine.is_complete(key)
        cluster.broker_0.open.set()
        assert await coordinator.end(after(key, 2), A0, wait=wait) == after(key, 3)
        assert await coordinator.end(after(key, 3), wait=wait) == after(key, 4)


async def test_waiting_ends_with_the_deadline_and_a_repeat_waits_on(cluster: Cluster) -> None:
    """C-017."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        now = asyncio.get_running_loop().time()
        call = Call(listener="default", deadline=now - 1)
        with pytest.raises(RequestTimedOutError, match="not all markers") as caught:
            await coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE, call=call)
        assert caught.value.details == {"outcome": "COMMITTED", "next_epoch": "1"}
        with pytest.raises(RequestTimedOutError):
            await coordinator.init(instance="two", wait=wire.WAIT_FOR_COMPLETE, call=call)
        cluster.broker_0.open.set()
        wait = wire.WAIT_FOR_COMPLETE
        assert await coordinator.init(instance="two", wait=wait) == after(key, 2)


async def test_a_caller_that_goes_away_leaves_nothing_behind(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        waiting = asyncio.create_task(coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE))
        await until(lambda: cluster.broker_0.requests)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        cluster.broker_0.open.set()
        await until(lambda: coordinator.machine.is_complete(key))
        await until(lambda: coordinator.markers._completions == {})


# -- participants and operators -----------------------------------------------------------------


async def test_an_inquiry_of_another_cluster_is_refused(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InconsistentClusterIdError, match="'test-cluster', not to ''"):
            await ask(coordinator, wire.InquireTransactionsRequest())


async def test_inquiries_are_answered_in_the_order_asked(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        request = inquire(producer_id=key.producer_id)
        request.inquiries.add(
            producer_id=key.producer_id,
            producer_epoch=1,
            participant=participants_pb2.Participant(group_id="group-g"),
        )
        request.inquiries.add(
            producer_id=key.producer_id + 1,
            participant=participants_pb2.Participant(group_id="group-g"),
        )
        response = await ask(coordinator, request)
        assert isinstance(response, wire.InquireTransactionsResponse)
        committed, ongoing, later = response.answers
        assert committed.outcome == wire.INQUIRY_OUTCOME_COMMITTED
        assert committed.coordinator_epoch == 1
        assert ongoing.outcome == wire.INQUIRY_OUTCOME_ONGOING
        assert ongoing.time_left_ms == TIMEOUT_MS
        assert later.outcome == wire.INQUIRY_OUTCOME_LATER
        assert later.error.code == errors_pb2.ERROR_CODE_NOT_COORDINATOR


async def test_an_outcome_that_is_not_known_is_answered_after_a_commit(cluster: Cluster) -> None:
    """So that a deposed owner cannot answer it."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key)
        commits = coordinator.runner.stats().commits
        await ask(coordinator, inquire(producer_id=key.producer_id))
        assert coordinator.runner.stats().commits == commits + 1


async def describe(coordinator: Coordinator) -> wire.TransactionalIdDescription:
    request = wire.DescribeTransactionsRequest(transactional_ids=["app"])
    response = await ask(coordinator, request)
    assert isinstance(response, wire.DescribeTransactionsResponse)
    return response.descriptions[0]


async def test_a_description_names_the_markers_that_are_missing(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0, A1)
        await until(lambda: coordinator.markers.missing(key) == {A0})
        described = await describe(coordinator)
        assert (described.producer_id, described.producer_epoch) == after(key)
        assert described.transaction_timeout_ms == TIMEOUT_MS
        decided, current = described.transactions
        assert decided.state == wire.TRANSACTION_STATE_PREPARE_COMMIT
        assert decided.participants.topics == topics(0, 1)
        assert decided.missing_markers.topics == topics(0)
        assert decided.start_time_ms == cluster.clock.now_ms()
        assert current.state == wire.TRANSACTION_STATE_EMPTY
        assert not current.missing_markers.topics


async def test_markers_are_missing_to_all_before_any_was_sent(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, GROUP, commit=False)
    async with cluster.coordinator(send=False) as coordinator:
        (decided, _) = (await describe(coordinator)).transactions
        assert decided.missing_markers == decided.participants
        assert decided.abort_reason == "client"
        assert decided.traceparent == "of call"


async def test_no_marker_is_missing_once_all_are_acknowledged(cluster: Cluster) -> None:
    """Even if the completion is not written yet."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: coordinator.machine.is_complete(key))
        assert coordinator.markers.missing(key) == set()


async def test_an_id_that_is_not_there_is_described_as_an_error(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        described = await describe(coordinator)
        assert described.error.code == errors_pb2.ERROR_CODE_TRANSACTIONAL_ID_NOT_FOUND


async def listed(coordinator: Coordinator, request: wire.ListTransactionsRequest) -> list[str]:
    response = await ask(coordinator, request)
    assert isinstance(response, wire.ListTransactionsResponse)
    return [each.transactional_id for each in response.transactions]


async def test_a_list_is_ordered_and_filtered(cluster: Cluster) -> None:
    """C-107."""
    async with cluster.coordinator(send=False) as coordinator:
        for name in ("b", "ab", "a"):
            await ask(coordinator, init(transactional_id=name))
        key = await coordinator.init()
        await coordinator.end(key, A0)
        cluster.clock.advance(10)
        request = wire.ListTransactionsRequest
        assert await listed(coordinator, request()) == ["a", "ab", "app", "b"]
        pattern = "a.?|c"
        assert await listed(coordinator, request(transactional_id_pattern=pattern)) == ["a", "ab"]
        state = wire.TRANSACTION_STATE_PREPARE_COMMIT
        assert await listed(coordinator, request(states=[state])) == ["app"]
        assert await listed(coordinator, request(producer_ids=[key.producer_id])) == ["app"]
        assert await listed(coordinator, request(running_longer_than_ms=9)) == ["app"]
        assert await listed(coordinator, request(running_longer_than_ms=10)) == []


async def test_a_listing_counts_the_transactions_that_wait_for_markers(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await coordinator.end(after(key), A0, commit=False)
        response = await ask(coordinator, wire.ListTransactionsRequest())
        assert isinstance(response, wire.ListTransactionsResponse)
        (listing,) = response.transactions
        assert listing == wire.TransactionListing(
            transactional_id="app",
            producer_id=key.producer_id,
            producer_epoch=2,
            state=wire.TRANSACTION_STATE_PREPARE_ABORT,
            start_time_ms=cluster.clock.now_ms(),
            incomplete_transactions=2,
        )


async def test_a_list_that_is_too_long_asks_for_a_filter(cluster: Cluster) -> None:
    async with cluster.coordinator(limits=TransactionLimits(list_max=2)) as coordinator:
        for name in ("a", "b", "c"):
            await ask(coordinator, init(transactional_id=name))
        with pytest.raises(InvalidRequestError, match="more than 2 transactional ids match"):
            await listed(coordinator, wire.ListTransactionsRequest())
        request = wire.ListTransactionsRequest(transactional_id_pattern="[ab]")
        assert await listed(coordinator, request) == ["a", "b"]


async def test_a_restart_keeps_every_answer(cluster: Cluster) -> None:
    """C-035, C-100: the same journal, another process."""
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
    async with cluster.coordinator(send=False) as coordinator:
        assert await coordinator.init() == key
        assert await coordinator.end(key, A0) == after(key)
        assert coordinator.machine.current_epoch(key.producer_id) == 1
        assert key == TransactionKey(key.producer_id, 0)
