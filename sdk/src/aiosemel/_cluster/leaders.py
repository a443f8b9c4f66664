"""Questions about partitions, each asked of the broker that leads it, until all are answered."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from aiosemel._cluster.retry import Deadline, pause_before_repeat
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    RefreshRetriableError,
    RetriableError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.offsets import TopicPartition
from semel_common import ids

Q = TypeVar("Q")
A = TypeVar("A")

AskBroker: TypeAlias = Callable[[str, Sequence[Q], Deadline], Awaitable[Sequence[A | SemelError]]]
"""Asks the broker at an address some questions, and returns their answers in the same order."""
Questions: TypeAlias = Mapping[TopicPartition, Callable[[ids.TopicPartition], Q]]
"""Makes the question about each partition, once its topic id is known."""


class Leaders(Generic[Q, A]):
    """Asks the leaders of partitions. Questions may be asked twice: they must be idempotent."""

    def __init__(self, cluster: Cluster, ask: AskBroker[Q, A]) -> None:
        self._cluster = cluster
        self._ask_broker = ask

    async def ask(self, questions: Questions[Q], deadline: Deadline) -> dict[TopicPartition, A]:
        """Return an answer for each partition.

        Raises UnknownTopicOrPartitionError, RequestTimedOutError, and whatever else is refused.
        """
        found: dict[TopicPartition, A] = {}
        pauses = self._cluster.backoff()
        while missing := {each: q for each, q in questions.items() if each not in found}:
            error = await self._ask_once(missing, found, deadline)
            if error is None:
                continue
            await pause_before_repeat(pauses, deadline, error)
            if isinstance(error, RefreshRetriableError):
                await self._cluster.refresh_after(error, deadline)
        return found

    async def _ask_once(
        self, questions: Questions[Q], found: dict[TopicPartition, A], deadline: Deadline
    ) -> RetriableError | None:
        """Ask every leader once; returns the last error after which asking again may help."""
        last: RetriableError | None = None
        await self._cluster.cache.topics(dict.fromkeys(each.topic for each in questions), deadline)
        asked: defaultdict[str, dict[TopicPartition, Q]] = defaultdict(dict)
        for each, question in questions.items():
            partition = await self._identify(each, deadline)
            try:
                address = self._cluster.leader_address(partition)
            except RetriableError as error:
                last = error
            else:
                asked[address][each] = question(partition)
        for address, of_one in asked.items():
            try:
                await self._ask(address, of_one, found, deadline)
            except RetriableError as error:
                last = error
        return last

    async def _identify(self, wanted: TopicPartition, deadline: Deadline) -> ids.TopicPartition:
        topic = await self._cluster.cache.topic(wanted.topic, deadline)
        if wanted.partition >= len(topic.partitions):
            # The topic may have got more of them since.
            await self._cluster.cache.refresh(deadline)
            topic = await self._cluster.cache.topic(wanted.topic, deadline)
        if not 0 <= wanted.partition < len(topic.partitions):
            raise UnknownTopicOrPartitionError(
                f"topic {wanted.topic} has {len(topic.partitions)} partitions, "
                f"no partition {wanted.partition}"
            )
        return ids.TopicPartition(topic.topic_id, wanted.partition)

    async def _ask(
        self,
        address: str,
        questions: Mapping[TopicPartition, Q],
        found: dict[TopicPartition, A],
        deadline: Deadline,
    ) -> None:
        answers = await self._ask_broker(address, list(questions.values()), deadline)
        errors: list[SemelError] = []
        for each, answer in zip(questions, answers, strict=True):
            if isinstance(answer, SemelError):
                errors.append(answer)
            else:
                found[each] = answer
        for error in errors:
            raise error
