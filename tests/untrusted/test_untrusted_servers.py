"""The SDK against servers that it cannot trust.

`make untrusted ANSWERS=n` gives as many answers as wanted.
"""

import inspect
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import NamedTuple

import pytest
from google.protobuf.message import Message

import aiosemel
from aiosemel._answers.connector import CHECKS
from semel_common.wire import methods
from semel_common.wire.methods import Method
from semel_local import LocalCluster
from untrusted.bombs import Peak, peak_of
from untrusted.drive import drive, upstream
from untrusted.liar import Liar
from untrusted.lies import Lie, field_bomb
from untrusted.operations import OPERATIONS, WITHIN
from untrusted.world import TOPIC

MIB = 1 << 20
BOMB_BYTES = 16 * MIB
MEMORY_FACTOR = 8
"""A client takes at most so many times the bytes of a message, whatever the message holds."""
BETWEEN_SERVICES = {
    "CompletePartitionReassignment",
    "CopyLog",
    "FindCoordinator",
    "HandOverGroups",
    "HandOverLog",
    "HandOverTransactions",
    "InquireTransactions",
    "NoteAudit",
    "RegisterInstance",
    "WriteTxnMarkers",
}
"""RPCs that the SDK does not call."""
CHECKED_ELSEWHERE = {"OpenFrames"}
"""By the connection."""


def test_every_public_operation_is_driven() -> None:
    public = {
        f"{name}.{call}"
        for name in aiosemel.__all__
        if inspect.isclass(kind := getattr(aiosemel, name)) and kind.__module__[:9] == "aiosemel."
        for call, _ in inspect.getmembers(kind, inspect.iscoroutinefunction)
        if not call.startswith("_")
    }
    driven = OPERATIONS.keys() | WITHIN
    assert public - driven == set()
    assert WITHIN - public == set()


def test_the_answer_of_every_rpc_is_checked() -> None:
    called = {
        method.name
        for method in vars(methods).values()
        if isinstance(method, Method) and method.name not in BETWEEN_SERVICES
    }
    checked = {path.rpartition("/")[2] for path in CHECKS}
    assert called == checked | CHECKED_ELSEWHERE


async def test_every_operation_ends_with_a_result_or_an_error_of_its_own() -> None:
    result = await drive(answers=400, seed=1)
    assert result.violations == []
    assert result.ends.keys() >= {"returned", "InvalidResponseError"}


# -- memory --------------------------------------------------------------------------------------


class Place(NamedTuple):
    liar: Liar
    topic_id: str

    async def peak_of(self, name: str) -> Peak:
        return await peak_of(self.liar.address, name, self.topic_id)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with LocalCluster() as cluster:
        async with cluster.client() as client:
            topic = await client.admin().create_topic(TOPIC, partitions=3)
        async with Liar(upstream(cluster), Random(0)) as liar:
            liar.probability = 1.0
            yield Place(liar, topic.topic_id)


def bomb(
    wanted: Method[Message, Message], data: Callable[[], bytes]
) -> Callable[[Method[Message, Message], Message, Random], Lie]:
    """Return a lie about one RPC; all other answers are true."""

    def told(method: Method[Message, Message], truth: Message, _: Random) -> Lie:
        if method.path == wanted.path:
            return Lie("bomb", data())
        return Lie("truth", truth.SerializeToString())

    return told


async def test_metadata_of_empty_topics_takes_memory_by_its_bytes(place: Place) -> None:
    data = field_bomb(methods.METADATA.response, BOMB_BYTES // 2)
    # Its first list of messages is that of instances; topics have more fields.
    place.liar.tell = bomb(methods.METADATA, lambda: data.replace(data[:1], b"\x2a"))
    peak = await place.peak_of("Admin.list_topics")
    assert "answered Metadata: the message has more than 100,000 elements" in peak.error
    assert peak.size_bytes < MEMORY_FACTOR * BOMB_BYTES


async def test_frames_without_end_take_memory_by_their_bytes(place: Place) -> None:
    place.liar.tell = bomb(
        methods.FETCH, lambda: field_bomb(methods.FETCH.response, BOMB_BYTES // 2)
    )
    peak = await place.peak_of("LogRangeReader.read")
    assert "more than 100,000 elements" in peak.error
    assert peak.size_bytes < MEMORY_FACTOR * BOMB_BYTES
