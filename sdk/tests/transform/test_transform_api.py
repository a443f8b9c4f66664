"""What applications call: the client's ``transform``."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from consumer_harness import BOOTSTRAP, heartbeats
from fake_cluster import FakeCluster

from aiosemel import (
    Consumer,
    ConsumerOptions,
    ConsumerRecord,
    IsolationLevel,
    Outputs,
    SemelClient,
    Transform,
    TransformOptions,
    TransformStats,
)
from aiosemel.errors import InvalidConfigError
from semel.group.v1.group_pb2 import ConsumerGroupHeartbeatRequest


async def handle(_records: Sequence[ConsumerRecord], _outputs: Outputs) -> None:
    pass


@asynccontextmanager
async def client() -> AsyncIterator[SemelClient]:
    async with SemelClient(BOOTSTRAP, connector=FakeCluster()) as opened:
        yield opened


async def test_a_transformation_is_made_without_io() -> None:
    async with client() as opened:
        made = opened.transform(source=["in"], group="g", transactional_id="t", handler=handle)
        assert isinstance(made, Transform)
        assert made.stats == TransformStats()


@pytest.mark.parametrize(
    "options",
    [
        ConsumerOptions(enable_auto_commit=True),
        ConsumerOptions(isolation_level=IsolationLevel.READ_UNCOMMITTED),
    ],
)
async def test_options_in_conflict_with_exactly_once_are_refused(options: ConsumerOptions) -> None:
    async with client() as opened:
        with pytest.raises(InvalidConfigError, match="reads committed records"):
            opened.transform(
                source=["in"],
                group="g",
                transactional_id="t",
                handler=handle,
                consumer_options=options,
            )


async def joined(**options: object) -> ConsumerGroupHeartbeatRequest:
    """Return how a transformation joins its group."""
    fake = FakeCluster()
    fake.create_topic("in")
    async with SemelClient(BOOTSTRAP, connector=fake) as opened:
        consumed = _consumer_of(opened, **options)
        consumed.subscribe(["in"])
        await consumed.poll(timeout_ms=100)
    join, *_ = heartbeats(fake)
    return join


def _consumer_of(client: SemelClient, **options: object) -> Consumer:
    made = client.transform(
        source=["in"],
        group="g",
        transactional_id="t",
        handler=handle,
        **options,  # type: ignore[arg-type]  # a test's own
    )
    return made._consumer


async def test_a_transformation_is_a_static_member_by_its_transactional_id() -> None:
    join = await joined()
    assert (join.instance_id, join.takes_over) == ("t", True)


async def test_an_instance_id_that_is_given_stays() -> None:
    named = ConsumerOptions(group_instance_id="mine")
    assert (await joined(consumer_options=named)).instance_id == "mine"


async def test_a_transformation_that_takes_its_id_back_is_a_dynamic_member() -> None:
    options = TransformOptions(take_over_when_fenced=True)
    join = await joined(options=options)
    assert (join.instance_id, join.takes_over) == ("", False)


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match="max_records is 0, less than 1"):
        TransformOptions(max_records=0)
    with pytest.raises(InvalidConfigError, match="linger_ms is -1, less than 0"):
        TransformOptions(linger_ms=-1)
    with pytest.raises(InvalidConfigError, match="retry_backoff_max_ms is 5"):
        TransformOptions(retry_backoff_max_ms=5)
