"""Every address that lives is found in one round, wherever it stands among the dead ones."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest
from network_faults import Refuse
from producer_harness import FakeCluster, open_client

from aiosemel import ClientOptions, ProducerOptions, SemelClient
from aiosemel._cluster.coordinators import Coordinators, unreachable
from aiosemel.errors import InvalidResponseError, NetworkExceptionError, SslAuthenticationError
from semel_common.wire.diagnosis.call_diagnosis import SERVICE
from semel_common.wire.diagnosis.peer_probe import CAUSE, REFUSED

OPTIONS = ClientOptions(default_api_timeout_ms=5_000)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("t", partitions=2)
    return fake


async def use(client: SemelClient) -> None:
    """Make calls that any coordinator answers: with the first attempt, each of them."""
    for _ in range(3):
        assert [topic.name for topic in await client.admin().list_topics()] == ["t"]
        producer = client.producer(ProducerOptions(max_block_ms=5_000))
        await producer.send_and_wait("t", b"hello")


@pytest.mark.parametrize("order", list(itertools.permutations(["a:1", "b:1", "coordinator:1"])))
async def test_bootstrap_address_that_lives_is_found_wherever_it_stands(
    fake: FakeCluster, order: Sequence[str]
) -> None:
    fake.away = {"a:1", "b:1"}
    async with open_client(fake, options=OPTIONS, bootstrap=",".join(order)) as client:
        await use(client)
    assert sum(address in fake.away for address in fake.addresses) <= len(fake.away)


@pytest.mark.parametrize("alive", range(4))
async def test_one_coordinator_of_four_suffices(alive: int) -> None:
    fake = FakeCluster(coordinators=4)
    fake.create_topic("t")
    addresses = ["coordinator:1", *(f"coordinator{i}:1" for i in range(1, 4))]
    async with open_client(fake, options=OPTIONS) as client:
        await client.admin().list_topics()
        fake.away = {*addresses} - {addresses[alive]}
        await use(client)


# -- the order ------------------------------------------------------------------------------------


def test_rounds_begin_with_another_address_each_time() -> None:
    coordinators = Coordinators(("a", "b", "c"))
    assert [coordinators.round()[0] for _ in range(4)] == ["a", "b", "c", "a"]
    coordinators.know(["c", "d"])
    assert sorted(coordinators.round()) == ["a", "b", "c", "d"]


def test_addresses_that_have_failed_come_last_until_they_answer() -> None:
    coordinators = Coordinators(("a", "b", "c"))
    coordinators.failed("b")
    coordinators.failed("a")
    assert {coordinators.round() for _ in range(6)} == {("c", "b", "a")}
    coordinators.answered("a")
    assert {coordinators.round()[0] for _ in range(6)} == {"a", "c"}


def test_only_coordinators_are_kept_in_mind() -> None:
    coordinators = Coordinators(("a",))
    coordinators.know(["b"])
    coordinators.failed("broker")
    coordinators.failed("b")
    coordinators.know(["c"])
    coordinators.know(["b", "c"])
    assert {coordinators.round()[0] for _ in range(6)} == {"a", "b", "c"}


# -- what is said ---------------------------------------------------------------------------------


def refused(address: str) -> NetworkExceptionError:
    text = f"nothing listens at {address}"
    return NetworkExceptionError(text, address=address, **{CAUSE: REFUSED})


def test_error_of_a_round_names_the_cause_at_each_address_once() -> None:
    error = unreachable([refused("a:1"), refused("b:1"), refused("a:1")])
    assert error.message == "nothing listens at a:1; nothing listens at b:1"
    assert "`semel up` starts a cluster" in unreachable([refused("[::1]:9092")]).message


def test_service_of_another_kind_is_no_coordinator() -> None:
    error = NetworkExceptionError("a:1 is the address of a partition-broker", **{SERVICE: "x"})
    assert unreachable([error]).message.endswith(
        "partition-broker: name the address of a coordinator"
    )


WRONG = NetworkExceptionError(
    "coordinator:1 is the address of a partition-broker", **{SERVICE: "partition-broker"}
)


def test_other_services_stay_wrong_as_long_as_no_coordinator_has_answered() -> None:
    tls = SslAuthenticationError("tls")
    assert type(unreachable([WRONG], is_first=True)) is InvalidResponseError
    assert type(unreachable([WRONG, tls], is_first=True)) is SslAuthenticationError
    assert type(unreachable([WRONG, refused("a:1")], is_first=True)) is NetworkExceptionError
    assert type(unreachable([WRONG])) is NetworkExceptionError


async def test_bootstrap_of_another_service_ends_a_call_at_once(fake: FakeCluster) -> None:
    fake.then("Metadata", Refuse(WRONG))
    async with open_client(fake, options=OPTIONS) as client:
        began = asyncio.get_running_loop().time()
        with pytest.raises(InvalidResponseError, match="name the address of a coordinator"):
            await client.admin().list_topics()
        assert asyncio.get_running_loop().time() < began + 0.1


def test_only_trouble_that_no_time_heals_ends_a_call() -> None:
    tls, http = SslAuthenticationError("tls"), InvalidResponseError("http")
    assert type(unreachable([refused("a:1"), tls])) is NetworkExceptionError
    assert type(unreachable([http, tls])) is SslAuthenticationError
