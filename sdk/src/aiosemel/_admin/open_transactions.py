"""The search for open transactions, through all participants, with one deadline."""

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import groupby

from aiosemel._cluster.metadata import COORDINATOR, ROLES
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel._cluster.transaction_calls import get_outcome, topic_names
from aiosemel.errors import InvalidRequestError, RetriableError, SemelError
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.open_transactions import OpenTransaction, OpenTransactions
from aiosemel.types.transaction_outcomes import TransactionOutcomeDescription
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.ids import transaction_log_partition_of
from semel_common.wire import methods

_PAGE_MAX = 10_000
"""The most open transactions that one answer may be asked for."""


class OpenTransactionSearch:
    """Asks each participant for its open transactions, and coordinators for their outcomes."""

    def __init__(self, cluster_: Cluster, deadline: Deadline) -> None:
        self._cluster = cluster_
        self._deadline = deadline

    async def find(self, *, longer_than_ms: int, limit: int) -> OpenTransactions:
        """Return transactions open for that long, the oldest first, ``limit`` at most."""
        found: list[participants.OpenTransaction] = []
        unreachable: list[str] = []
        truncated = False
        for name, route in await self._participants():
            try:
                listed, there_is_more = await self._open_at(route, longer_than_ms, limit)
            except RetriableError as error:
                unreachable.append(f"{name}: {error.message}")
                continue
            found += listed
            truncated = truncated or there_is_more
        found.sort(key=lambda each: (each.start_time_ms, each.producer_id, each.producer_epoch))
        return OpenTransactions(
            transactions=tuple(await self._described(found[: limit or None])),
            truncated=truncated or bool(limit and len(found) > limit),
            unreachable=tuple(unreachable),
        )

    async def _participants(self) -> list[tuple[str, Route]]:
        """Return the instances to ask: a decommissioned, empty one may be gone for good."""
        await self._cluster.cache.refresh_if_due(self._deadline)
        described = await self._cluster.call(
            self._cluster.any_coordinator(),
            methods.DESCRIBE_CLUSTER,
            cluster.DescribeClusterRequest(),
            deadline=self._deadline,
        )
        instances = sorted(
            (instance.instance.role, instance.instance.instance_id)
            for instance in described.instances
            if instance.leader_partitions or not instance.instance.decommissioned
        )
        return [
            (f"{ROLES[role]}-{number}", partial(self._cluster.address_of, role, number))
            for role, number in instances
            if role != COORDINATOR
        ]

    async def _open_at(
        self, route: Route, longer_than_ms: int, limit: int
    ) -> tuple[list[participants.OpenTransaction], bool]:
        """Return open transactions of an instance, ``limit`` or more, and if there are others.

        Each page is asked for once: an instance that is away is an answer, too.
        """

        async def ask(token: str) -> participants.ListOpenTransactionsResponse:
            request = participants.ListOpenTransactionsRequest(
                open_longer_than_ms=longer_than_ms,
                limit=min(limit, _PAGE_MAX),
                page_token=token,
            )
            method = methods.LIST_OPEN_TRANSACTIONS
            return await self._cluster.attempt(route, method, request, deadline=self._deadline)

        found: list[participants.OpenTransaction] = []
        there_is_more = False
        async for page in pages(ask):
            found += page.transactions
            if page.truncated and limit and len(found) >= limit:
                return found, True
            there_is_more = page.truncated and not page.next_page_token  # An older instance.
        return found, there_is_more

    async def _described(
        self, found: Iterable[participants.OpenTransaction]
    ) -> list[OpenTransaction]:
        listed = list(found)
        names = await self._topic_names(listed)
        known = await self._outcomes({(each.producer_id, each.producer_epoch) for each in listed})
        return [
            _open(entry, names, known[entry.producer_id, entry.producer_epoch]) for entry in listed
        ]

    async def _outcomes(
        self, keys: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], TransactionOutcomeDescription | SemelError]:
        """Ask for the outcomes of each transaction-log partition in turn, of all side by side.

        So a coordinator that is away delays no other, and few calls are under way at a time.
        """
        known: dict[tuple[int, int], TransactionOutcomeDescription | SemelError] = {}

        async def ask(some: Iterable[tuple[int, int]]) -> None:
            for key in some:
                known[key] = await self._outcome(*key)

        ordered = sorted(keys, key=_log_partition)
        async with asyncio.TaskGroup() as group:
            for _, some in groupby(ordered, _log_partition):
                group.create_task(ask([*some]))
        return known

    async def _outcome(
        self, producer_id: int, producer_epoch: int
    ) -> TransactionOutcomeDescription | SemelError:
        try:
            return await get_outcome(
                self._cluster,
                transactional_id=None,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                deadline=self._deadline,
            )
        except (RetriableError, InvalidRequestError) as error:
            return error

    async def _topic_names(self, found: Iterable[participants.OpenTransaction]) -> dict[str, str]:
        topic_ids = {each.participant.topic_partition.topic_id for each in found} - {""}
        return await topic_names(self._cluster, topic_ids, self._deadline)


def _log_partition(key: tuple[int, int]) -> int:
    producer_id, _ = key
    return transaction_log_partition_of(producer_id)


def _open(
    found: participants.OpenTransaction,
    names: dict[str, str],
    known: TransactionOutcomeDescription | SemelError,
) -> OpenTransaction:
    is_group = found.participant.HasField("group_id")
    place = found.participant.topic_partition
    name = names.get(place.topic_id, place.topic_id)
    return OpenTransaction(
        partition=None if is_group else TopicPartition(name, place.partition),
        group_id=found.participant.group_id if is_group else None,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        start_time_ms=found.start_time_ms,
        age_ms=found.age_ms,
        first_offset=None if is_group else found.first_offset,
        known=None if isinstance(known, SemelError) else known,
        problem=known.message if isinstance(known, SemelError) else "",
        coordinator_answered=not isinstance(known, RetriableError),
    )
