"""What applications call: the client's ``transform``."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from consumer_harness import BOOTSTRAP
from fake_cluster import FakeCluster

from aiosemel.client import SemelClient
from aiosemel.consumer_options import ConsumerOptions, IsolationLevel
from aiosemel.consumer_records import ConsumerRecord
from aiosemel.errors import InvalidConfigError
from aiosemel.transform import Transform
from aiosemel.transform_types import Outputs, TransformOptions, TransformStats


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


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match="max_records is 0, less than 1"):
        TransformOptions(max_records=0)
    with pytest.raises(InvalidConfigError, match="linger_ms is -1, less than 0"):
        TransformOptions(linger_ms=-1)
    with pytest.raises(InvalidConfigError, match="retry_backoff_max_ms is 5"):
        TransformOptions(retry_backoff_max_ms=5)
