"""Where requests go: the metadata cache, routes, retries, deadlines."""

import asyncio
from random import Random

import pytest
from cluster_calls import cluster_of, init, now
from network_faults import Hold, LoseRequest, Refuse
from producer_harness import FakeCluster, elapse

from aiosemel import ClientOptions
from aiosemel._cluster.metadata import BROKER, COORDINATOR, GROUP_COORDINATOR
from aiosemel._cluster.retry import Deadline, Pauses, pause_before_repeat, pause_ms
from aiosemel._shared.name_checks import parse_bootstrap
from aiosemel.errors import (
    BrokerNotAvailableError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidConfigError,
    InvalidRequestError,
    InvalidTopicError,
    NotCoordinatorError,
    RequestTimedOutError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest
from semel_common.ids import TopicPartition


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster(brokers=2)
    cluster.create_topic("t", partitions=2)
    return cluster


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bootstrap", "addresses"),
    [
        ("localhost:9092", ("localhost:9092",)),
        (" a:1, b:2 ,", ("a:1", "b:2")),
        ("[::1]:9092", ("[::1]:9092",)),
    ],
)
def test_a_bootstrap_has_one_address_or_several(bootstrap: str, addresses: tuple[str]) -> None:
    assert parse_bootstrap(bootstrap) == addresses


@pytest.mark.parametrize(
    "bootstrap",
    ["", " , ", "localhost", "host:", ":1", "h:0", "h:65536", "http://h:1", "h:1,semel://h:1"],
)
def test_a_bootstrap_without_an_address_is_refused(bootstrap: str) -> None:
    with pytest.raises(InvalidConfigError, match="bootstrap"):
        parse_bootstrap(bootstrap)


# -- metadata -------------------------------------------------------------------------------------


async def test_nothing_is_known_before_the_first_answer(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    with pytest.raises(CoordinatorNotAvailableError, match="no metadata"):
        _ = cluster.cache.metadata
    assert cluster.cache.cached_topic("t") is None


async def test_a_topic_is_asked_for_once(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    topic = await cluster.cache.topic("t", Deadline.after_ms(1_000))
    assert await cluster.cache.topic("t", Deadline.after_ms(1_000)) is topic
    assert [partition.leader_id for partition in topic.partitions] == [0, 1]
    assert len(fake.asked(MetadataRequest)) == 1


async def test_metadata_grows_old(fake: FakeCluster) -> None:
    cluster = cluster_of(fake, ClientOptions(metadata_max_age_ms=1_000))
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    await elapse(1.1)
    assert cluster.cache.cached_topic("t") is None
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    assert len(fake.asked(MetadataRequest)) == 2


async def test_a_name_that_no_topic_can_have_is_refused_at_once(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer_fakes.UnknownTopicOrPartitionError", InvalidTopicError)
    before = now()
    with pytest.raises(InvalidTopicError):
        await cluster_of(fake).cache.topic("no-such", Deadline.after_ms(10_000))
    assert now() - before < 0.1


async def test_a_topic_that_did_not_come_is_not_asked_for_any_longer(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    with pytest.raises(UnknownTopicOrPartitionError):
        await cluster.cache.topic("no-such", Deadline.after_ms(1_000))
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    assert list(fake.asked(MetadataRequest)[-1].topics) == ["t"]


async def test_a_topic_made_again_has_another_id(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    old = await cluster.cache.topic("t", Deadline.after_ms(1_000))
    fake.create_topic("t")
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    new = cluster.cache.cached_topic("t")
    assert new is not None
    assert new.topic_id != old.topic_id
    with pytest.raises(UnknownTopicIdError):
        cluster.leader_address(TopicPartition(old.topic_id, 0))


async def test_a_topic_that_is_gone_is_forgotten(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    del fake.topics["t"]
    fake.version += 1
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert cluster.cache.cached_topic("t") is None
    cluster.cache.forget_topic("t")
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert list(fake.asked(MetadataRequest)[-1].topics) == []


async def test_an_answer_that_lags_behind_changes_nothing(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    fake.version -= 1
    del fake.topics["t"]
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert cluster.cache.cached_topic("t") is not None


async def test_callers_that_refresh_at_the_same_time_share_an_answer(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await asyncio.gather(*(cluster.cache.refresh(Deadline.after_ms(1_000)) for _ in range(10)))
    assert len(fake.asked(MetadataRequest)) == 1


async def test_refreshes_that_ask_the_same_leave_a_pause(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    before = now()
    for _ in range(5):
        await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert now() - before == pytest.approx(0.4, abs=0.02)


async def test_a_topic_that_was_never_asked_for_does_not_wait(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    before = now()
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    assert now() - before < 0.05


async def test_when_who_refreshes_is_cancelled_another_goes_on(fake: FakeCluster) -> None:
    fake.then("Metadata", Hold(asyncio.Event()))
    cluster = cluster_of(fake)
    first = asyncio.create_task(cluster.cache.refresh(Deadline.after_ms(5_000)))
    second = asyncio.create_task(cluster.cache.refresh(Deadline.after_ms(5_000)))
    await elapse(0.1)
    first.cancel()
    await second
    assert cluster.cache.metadata.cluster_id == "c"


async def test_who_shares_a_refresh_has_a_deadline_too(fake: FakeCluster) -> None:
    fake.then("Metadata", Hold(asyncio.Event()))
    cluster = cluster_of(fake)
    first = asyncio.create_task(cluster.cache.refresh(Deadline.after_ms(5_000)))
    await elapse(0.1)
    with pytest.raises(RequestTimedOutError, match="no instance answered with metadata in time"):
        await cluster.cache.refresh(Deadline.after_ms(100))
    first.cancel()
    await asyncio.wait([first])


async def test_all_addresses_are_tried(fake: FakeCluster) -> None:
    fake.then("Metadata", LoseRequest(), LoseRequest())
    cluster = cluster_of(fake, bootstrap="a:1,b:1,coordinator:1")
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert fake.addresses == ["a:1", "b:1", "coordinator:1"]


async def test_an_address_that_hangs_does_not_keep_the_others_from_being_asked(
    fake: FakeCluster,
) -> None:
    fake.then("Metadata", Hold(asyncio.Event()))
    cluster = cluster_of(
        fake, ClientOptions(request_timeout_ms=3_000), bootstrap="a:1,b:1,coordinator:1"
    )
    before = now()
    await cluster.cache.refresh(Deadline.after_ms(10_000))
    assert now() - before == pytest.approx(1, abs=0.1)


async def test_metadata_is_asked_for_elsewhere_long_before_a_request_times_out(
    fake: FakeCluster,
) -> None:
    fake.then("Metadata", Hold(asyncio.Event()))
    cluster = cluster_of(fake, bootstrap="a:1,coordinator:1")
    before = now()
    await cluster.cache.refresh(Deadline.after_ms(60_000))
    assert now() - before == pytest.approx(1, abs=0.1)
    assert fake.addresses == ["a:1", "coordinator:1"]


async def test_patience_grows_while_everyone_is_slow(fake: FakeCluster) -> None:
    fake.then("Metadata", *(Hold(asyncio.Event()) for _ in range(4)))
    cluster = cluster_of(fake, bootstrap="a:1,coordinator:1")
    before = now()
    await cluster.cache.refresh(Deadline.after_ms(60_000))
    assert now() - before == pytest.approx(1 + 1 + 2 + 2, abs=0.5)
    fake.then("Metadata", Hold(asyncio.Event()))
    before = now()
    await cluster.cache.refresh(Deadline.after_ms(60_000))
    assert now() - before == pytest.approx(1, abs=0.2)


async def test_without_an_answer_the_deadline_holds(fake: FakeCluster) -> None:
    fake.down = True
    before = now()
    with pytest.raises(RequestTimedOutError, match="no service answers"):
        await cluster_of(fake).cache.refresh(Deadline.after_ms(2_000))
    assert 0.9 <= now() - before <= 2


# -- routes ---------------------------------------------------------------------------------------


async def test_an_unregistered_instance_is_looked_for(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    metadata = cluster.cache.metadata
    with pytest.raises(BrokerNotAvailableError, match="broker 7"):
        metadata.broker_address(7)
    with pytest.raises(CoordinatorNotAvailableError, match="coordinator 3 is not"):
        metadata.instance_address(COORDINATOR, 3)
    with pytest.raises(CoordinatorNotAvailableError, match="group-coordinator 3 is not"):
        metadata.instance_address(GROUP_COORDINATOR, 3)
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition 2"):
        cluster.leader_of(TopicPartition(fake.topics["t"], 2))()
    assert cluster.leader_of(TopicPartition(fake.topics["t"], 1))() == "broker1:1"
    assert cluster.group_coordinator_of("g")() == "group:1"
    assert metadata.addresses_of(BROKER) == ("broker0:1", "broker1:1")


async def test_an_instance_without_an_address_on_our_listener_is_not_there(
    fake: FakeCluster,
) -> None:
    fake.coordinator_host = ""
    cluster = cluster_of(fake)
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    with pytest.raises(CoordinatorNotAvailableError, match="coordinator 0 is not"):
        cluster.cache.metadata.instance_address(COORDINATOR, 0)


async def test_everyone_means_every_instance_of_the_layout() -> None:
    fake = FakeCluster(coordinators=3)
    cluster = cluster_of(fake)
    routes = await cluster.everyone(COORDINATOR, Deadline.after_ms(1_000))
    assert [route() for route in routes.values()] == [
        "coordinator:1",
        "coordinator1:1",
        "coordinator2:1",
    ]
    assert [*routes] == ["coordinator-0", "coordinator-1", "coordinator-2"]
    ((name, group),) = (await cluster.everyone(GROUP_COORDINATOR, Deadline.after_ms(1_000))).items()
    assert name == "group-coordinator-0"
    assert group() == "group:1"


async def test_any_coordinator_is_another_one_at_every_attempt() -> None:
    fake = FakeCluster(coordinators=2)
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    route = cluster.any_coordinator()
    assert {route() for _ in range(2)} == {"coordinator:1", "coordinator1:1"}


async def test_an_address_of_ipv6_has_brackets(fake: FakeCluster) -> None:
    fake.moved[0] = "::1"
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert cluster.cache.metadata.broker_address(0) == "[::1]:1"


async def test_lists_in_a_row_share_what_they_know_of_the_instances(fake: FakeCluster) -> None:
    cluster = cluster_of(fake, ClientOptions(retry_backoff_ms=500))
    before = now()
    for _ in range(3):
        await cluster.everyone(COORDINATOR, Deadline.after_ms(10_000))
    assert now() - before < 0.1
    assert len(fake.asked(MetadataRequest)) == 1
    await elapse(0.5)
    await cluster.everyone(COORDINATOR, Deadline.after_ms(10_000))
    assert len(fake.asked(MetadataRequest)) == 2
    cluster.cache.doubt()
    await cluster.everyone(COORDINATOR, Deadline.after_ms(10_000))
    assert len(fake.asked(MetadataRequest)) == 3


# -- retries --------------------------------------------------------------------------------------


async def test_retriable_errors_are_retried_with_growing_pauses(fake: FakeCluster) -> None:
    fake.then("InitProducerId", *[Refuse(CoordinatorLoadInProgressError("x"))] * 3)
    cluster = cluster_of(fake)
    before = now()
    await init(cluster)
    assert 0.7 * 0.8 <= now() - before <= 0.7 * 1.2 + 0.02
    assert len(fake.asked(MetadataRequest)) == 1


@pytest.mark.parametrize(("moves", "paused"), [(True, False), (False, True)])
async def test_only_the_same_coordinator_is_asked_again_after_a_pause(
    fake: FakeCluster, *, moves: bool, paused: bool
) -> None:
    cluster = cluster_of(fake, ClientOptions(retry_backoff_ms=500))
    await init(cluster)
    await elapse(1)
    fake.then("InitProducerId", Refuse(NotCoordinatorError("x")))
    if moves:
        fake.coordinator_host = "elsewhere"
        fake.version += 1
    before = now()
    await init(cluster)
    assert (now() - before > 0.3) is paused
    assert (fake.addresses[-1] == "elsewhere:1") is moves


async def test_errors_that_are_not_retriable_are_raised_at_once(fake: FakeCluster) -> None:
    fake.then("InitProducerId", Refuse(InvalidRequestError("no")))
    with pytest.raises(InvalidRequestError, match="no"):
        await init(cluster_of(fake))
    assert len(fake.asked(InitProducerIdRequest)) == 1


async def test_a_call_is_given_up_at_its_deadline_and_says_why(fake: FakeCluster) -> None:
    fake.then("InitProducerId", *[Refuse(CoordinatorLoadInProgressError("loading"))] * 100)
    before = now()
    with pytest.raises(
        RequestTimedOutError, match="not done in time: coordinator:1: loading"
    ) as raised:
        await init(cluster_of(fake), timeout_ms=3_000)
    assert isinstance(raised.value.__cause__, CoordinatorLoadInProgressError)
    assert now() - before <= 3


async def test_that_a_call_was_not_done_in_time_is_said_once(fake: FakeCluster) -> None:
    fake.then("Metadata", *[Refuse(CoordinatorLoadInProgressError("loading"))] * 100)
    with pytest.raises(RequestTimedOutError) as raised:
        await init(cluster_of(fake), timeout_ms=3_000)
    assert raised.value.message.count("not done in time") == 1


class AlmostWhole(Random):
    """Makes each pause a little shorter than it would be without jitter."""

    def uniform(self, *_: float) -> float:
        return 0.999


async def test_a_pause_that_ends_at_the_deadline_leaves_the_cause_in_the_error() -> None:
    pauses = Pauses(ClientOptions(retry_backoff_ms=100), AlmostWhole())
    loading = CoordinatorLoadInProgressError("loading")
    with pytest.raises(RequestTimedOutError, match="not done in time: loading"):
        await pause_before_repeat(pauses, Deadline.after_ms(100), loading)


async def test_one_attempt_takes_request_timeout_ms(fake: FakeCluster) -> None:
    fake.then("InitProducerId", Hold(asyncio.Event()))
    cluster = cluster_of(fake, ClientOptions(request_timeout_ms=500))
    before = now()
    await init(cluster)
    assert 0.5 <= now() - before <= 0.7


async def test_an_instance_that_does_not_answer_may_be_elsewhere_by_now(fake: FakeCluster) -> None:
    fake.then("InitProducerId", Hold(asyncio.Event()))
    cluster = cluster_of(fake, ClientOptions(request_timeout_ms=500))
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    asked = len(fake.asked(MetadataRequest))
    await init(cluster)
    assert len(fake.asked(MetadataRequest)) == asked + 1


async def test_without_time_nothing_is_sent(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    late = "no time is left for InitProducerId at coordinator:1"
    with pytest.raises(RequestTimedOutError, match=late):
        await init(cluster, timeout_ms=0)
    assert fake.asked(InitProducerIdRequest) == []


def test_pauses_are_bounded() -> None:
    options, random = ClientOptions(), Random(7)
    pauses = [pause_ms(options, random, attempts) for attempts in (1, 2, 3, 4, 5, 10_000)]
    for pause, middle in zip(pauses, (100, 200, 400, 800, 1_000, 1_000), strict=True):
        assert middle * 0.8 <= pause <= middle * 1.2


async def test_a_deadline_says_how_much_time_remains() -> None:
    deadline = Deadline.after_ms(1_500)
    assert (deadline.remaining_ms(), deadline.passed) == (1_500, False)
    await elapse(2)
    assert (deadline.remaining_ms(), deadline.passed) == (0, True)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"request_timeout_ms": 0}, "request_timeout_ms is 0, less than 1"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms is -1, less than 0"),
        ({"retry_backoff_ms": 2_000}, "retry_backoff_max_ms is 1000.*retry_backoff_ms.*2000"),
    ],
    ids=["time-out", "negative", "order"],
)
def test_client_options_in_conflict_are_refused(wrong: dict[str, int], names: str) -> None:
    with pytest.raises(InvalidConfigError, match=names):
        ClientOptions(**wrong)  # type: ignore[arg-type]  # only whole numbers are given
