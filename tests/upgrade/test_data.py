"""The data folder of every release so far: nothing in it is lost on the services of today."""

import asyncio
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import PreparedTransactionId, SemelClient
from aiosemel.errors import ProducerFencedError, TransactionAbortedError
from semel_local import ProcessCluster
from upgrade.__main__ import PREPARED, RELEASED
from upgrade.work import (
    COMMITTED,
    GROUP,
    KEPT,
    LONG,
    MANY,
    ORDERS,
    SENT,
    TALLY,
    committed,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

RELEASES = sorted(RELEASED.glob("*.tar.xz"))


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A cluster of today on the folder of a release."""

    client: SemelClient
    prepared: PreparedTransactionId


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=RELEASES, ids=lambda p: p.name)
async def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Upgraded]:
    folder: Path = tmp_path_factory.mktemp("data")
    with tarfile.open(request.param) as archive:
        await asyncio.to_thread(archive.extractall, folder, filter="data")
    prepared = PreparedTransactionId.parse((folder / PREPARED).read_text())
    async with (
        ProcessCluster(folder, settings=LONG) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        yield Upgraded(client, prepared)


async def test_there_is_a_release() -> None:
    assert RELEASES


async def test_committed_records_are_there_and_a_prepared_transaction_can_be_committed(
    upgraded: Upgraded,
) -> None:
    client = upgraded.client
    await client.admin().complete_prepared(upgraded.prepared, commit=True)
    # The open transaction has timed out by now, or ends here: its producer is gone.
    await client.admin().operators.fence_producer("open", operator="test", reason="it is gone")
    found = await committed(client, ORDERS, len(COMMITTED) + 1)
    assert found == [*COMMITTED, b"prepared"]


async def test_what_was_deleted_stays_deleted(upgraded: Upgraded) -> None:
    kept = range(SENT - KEPT, SENT)
    assert await committed(upgraded.client, MANY, KEPT) == [b"%d" % each for each in kept]


async def test_compacted_topics_have_the_newest_values(upgraded: Upgraded) -> None:
    found = await committed(upgraded.client, TALLY, 1)
    assert found[-1] == b"2"


async def test_groups_stand_where_they_stood(upgraded: Upgraded) -> None:
    offsets = await upgraded.client.admin().list_consumer_group_offsets(GROUP)
    at = offsets[ORDERS]
    assert at is not None
    assert at.offset == 1


async def test_a_producer_goes_on_and_the_one_before_it_is_fenced(upgraded: Upgraded) -> None:
    first = upgraded.client.transactional_producer("writer")
    await first.init_transactions()
    second = upgraded.client.transactional_producer("writer")
    await second.init_transactions()
    await second.begin_transaction()
    await second.send(TALLY.topic, b"3", key=b"sum", partition=TALLY.partition)
    await second.commit()
    await first.begin_transaction()
    await first.send(TALLY.topic, b"lost", key=b"sum", partition=TALLY.partition)
    with pytest.raises((ProducerFencedError, TransactionAbortedError)):
        await first.commit()
