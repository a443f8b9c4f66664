"""ListTransactions: its two orders, its pages, and the position of an entry."""

from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

import pytest
from transactions_harness import after
from transactions_requests import ask, init, topics
from transactions_service_harness import Cluster, Coordinator

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.machine import ListPosition, TransactionKey
from semel_coordinator.transactions.machine.queries import TransactionQueries
from semel_coordinator.transactions.rpc.operators import list_transactions
from semel_coordinator.transactions.rpc.operators.id_patterns import IdPattern
from semel_runtime.server.limits.list_turns import ListPauses

OLDEST_FIRST = wire.LIST_TRANSACTIONS_ORDER_OLDEST_FIRST
Request = wire.ListTransactionsRequest


async def begin(coordinator: Coordinator, name: str, key: TransactionKey) -> None:
    """Begin the current transaction of an id."""
    await ask(
        coordinator,
        wire.AddPartitionsToTxnRequest(
            transactional_id=name,
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
            topics=topics(0),
        ),
    )


async def made(coordinator: Coordinator, name: str) -> TransactionKey:
    response = await ask(coordinator, init(transactional_id=name))
    assert isinstance(response, wire.InitProducerIdResponse)
    return TransactionKey(response.producer_id, response.producer_epoch)


async def prepared(coordinator: Coordinator, name: str, key: TransactionKey) -> TransactionKey:
    """Prepare the current transaction of an id; returns the next one."""
    request = wire.PrepareTxnRequest(
        transactional_id=name,
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
    )
    await ask(coordinator, request)
    return after(key)


async def commit(coordinator: Coordinator, name: str, key: TransactionKey) -> None:
    """Commit the current transaction of an id, and wait for its markers."""
    request = wire.EndTxnRequest(
        transactional_id=name,
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        result=participants_pb2.TRANSACTION_RESULT_COMMIT,
        wait=wire.WAIT_FOR_COMPLETE,
    )
    await ask(coordinator, request)


async def pages(coordinator: Coordinator, request: Request) -> AsyncIterator[list[str]]:
    """Yield the pages of a list, each entry as its id and epoch."""
    while True:
        page = await ask(coordinator, request)
        assert isinstance(page, wire.ListTransactionsResponse)
        yield [f"{each.transactional_id} {each.producer_epoch}" for each in page.transactions]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return


async def busy(cluster: Cluster, coordinator: Coordinator) -> dict[str, TransactionKey]:
    """Make ids that began in another order than that of their names."""
    keys = {name: await made(coordinator, name) for name in ("a", "b", "c", "d", "e")}
    for name in ("d", "b", "e"):
        cluster.clock.advance(10)
        await begin(coordinator, name, keys[name])
    cluster.clock.advance(10)
    keys["d"] = await prepared(coordinator, "d", keys["d"])
    await begin(coordinator, "d", keys["d"])
    keys["e"] = await prepared(coordinator, "e", keys["e"])
    return keys


async def test_the_oldest_transaction_comes_first_and_idle_ids_come_last(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await busy(cluster, coordinator)
        (listed,) = [each async for each in pages(coordinator, Request(order=OLDEST_FIRST))]
        assert listed == ["d 0", "b 0", "e 0", "d 1", "a 0", "c 0", "e 1"]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_by_age_are_the_list_in_parts(cluster: Cluster, limit: int) -> None:
    async with cluster.coordinator() as coordinator:
        await busy(cluster, coordinator)
        request = Request(order=OLDEST_FIRST, limit=limit)
        listed = [each async for each in pages(coordinator, request)]
        whole = ["d 0", "b 0", "e 0", "d 1", "a 0", "c 0", "e 1"]
        assert listed == [whole[at : at + limit] for at in range(0, len(whole), limit)]


async def test_filters_hold_in_a_list_by_age(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        keys = await busy(cluster, coordinator)
        for request, expected in (
            (Request(states=[wire.TRANSACTION_STATE_ONGOING]), ["b 0", "d 1"]),
            (Request(states=[wire.TRANSACTION_STATE_PREPARED]), ["d 0", "e 0"]),
            (Request(states=[wire.TRANSACTION_STATE_EMPTY]), ["a 0", "c 0", "e 1"]),
            (Request(running_longer_than_ms=10), ["d 0", "b 0"]),
            (Request(transactional_id_pattern="[cd]"), ["d 0", "d 1", "c 0"]),
            (
                Request(producer_ids=[keys["b"].producer_id, keys["a"].producer_id, 77]),
                ["b 0", "a 0"],
            ),
        ):
            request.order = OLDEST_FIRST
            (listed,) = [each async for each in pages(coordinator, request)]
            assert listed == expected


async def test_a_change_between_two_pages_by_age_hides_no_entry_that_stays(
    cluster: Cluster,
) -> None:
    async with cluster.coordinator() as coordinator:
        keys = await busy(cluster, coordinator)
        request = Request(order=OLDEST_FIRST, limit=2)
        found = []
        async for page in pages(coordinator, request):
            found += page
            if len(found) == 2:  # The page ends with the transaction that ends now.
                await commit(coordinator, "b", keys["b"])
                cluster.clock.advance(10)
                await begin(coordinator, "a", keys["a"])
        assert found == ["d 0", "b 0", "e 0", "d 1", "a 0", "b 1", "c 0", "e 1"]


async def test_the_position_of_an_entry_leads_to_the_entries_behind_it(cluster: Cluster) -> None:
    """In both orders, also between two entries of one id."""
    async with cluster.coordinator() as coordinator:
        await busy(cluster, coordinator)
        for order in wire.ListTransactionsOrder.values():
            whole = await ask(coordinator, Request(order=order))
            assert isinstance(whole, wire.ListTransactionsResponse)
            entries = list(whole.transactions)
            for index, entry in enumerate(entries):
                behind = Request(order=order, behind=entry.position)
                rest = await ask(coordinator, behind)
                assert isinstance(rest, wire.ListTransactionsResponse)
                assert list(rest.transactions) == entries[index + 1 :]


async def test_a_position_that_no_entry_has_is_refused(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        for text in (
            "x",
            "1-a",
            "1--a",
            "-1-0-a",
            "1-0-",
            "01-0-a",
            "\u0661-0-a",
            "1" * 20 + "-0-a",
        ):
            for order in wire.ListTransactionsOrder.values():
                with pytest.raises(InvalidRequestError, match="behind is "):
                    await ask(coordinator, Request(order=order, behind=text))
        with pytest.raises(InvalidRequestError, match="order has the unknown value 7"):
            await ask(coordinator, Request(order=7))  # type: ignore[arg-type]  # no order has it


async def test_a_token_of_one_order_is_refused_in_the_other(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await busy(cluster, coordinator)
        for order, other in ((0, OLDEST_FIRST), (OLDEST_FIRST, 0)):
            page = await ask(coordinator, Request(order=order, limit=1))  # type: ignore[arg-type]  # a number of it
            assert isinstance(page, wire.ListTransactionsResponse)
            request = Request(order=other, limit=1, page_token=page.next_page_token)  # type: ignore[arg-type]  # as above
            with pytest.raises(InvalidRequestError, match="page_token is "):
                await ask(coordinator, request)


def counted(steps: list[tuple[str, int]], name: str) -> Callable[..., object]:
    """Return a step of a list that notes how many ids it is given."""
    real = getattr(TransactionQueries, name)

    def step(queries: TransactionQueries, ids: Sequence[str | int]) -> object:
        steps.append((name, len(ids)))
        return real(queries, ids)

    return step


async def test_no_step_of_a_list_looks_at_more_ids_than_a_piece(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So other calls have their turn, however many ids there are."""
    steps: list[tuple[str, int]] = []
    monkeypatch.setattr(list_transactions, "_POSITIONS_PIECE", 3)
    monkeypatch.setattr(list_transactions, "_PIECE", 2)
    for name in ("names_of", "open_positions"):
        monkeypatch.setattr(TransactionQueries, name, counted(steps, name))
    async with cluster.coordinator() as coordinator:
        for number in range(8):
            name = f"id-{number}"
            await begin(coordinator, name, await made(coordinator, name))
        states = [wire.TRANSACTION_STATE_ONGOING]
        for order in (0, OLDEST_FIRST):
            request = Request(order=order, states=states)  # type: ignore[arg-type]  # a number of it
            (listed,) = [each async for each in pages(coordinator, request)]
            assert len(listed) == 8
    assert steps == [
        *(("names_of", size) for size in (3, 3, 2)),
        *(("names_of", size) for size in (3, 3, 2)),
        *(("open_positions", size) for size in (3, 3, 2)),
    ]


async def test_names_are_compared_with_a_pattern_in_pieces(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So other calls have their turn, however long each comparison takes."""
    compared: list[int] = []

    class Pauses(ListPauses):
        async def after_piece(self) -> None:
            compared.append(len(matched))
            await super().after_piece()

    matched: list[str] = []

    def matches(name: str) -> bool:
        matched.append(name)
        return True

    monkeypatch.setattr(list_transactions, "ListPauses", Pauses)
    monkeypatch.setattr(list_transactions, "pattern", lambda _field, _text: IdPattern(matches, 3))
    async with cluster.coordinator() as coordinator:
        for number in range(8):
            await made(coordinator, f"id-{number}")
        await ask(coordinator, Request())
    assert compared[:3] == [3, 6, 8]


async def test_any_pages_of_any_order_make_the_same_list(cluster: Cluster) -> None:
    """Random ids and steps, and all entries compared with what one page lists."""
    random = Random(7)
    async with cluster.coordinator() as coordinator:
        keys = {name: await made(coordinator, name) for name in map("{:x}".format, range(24))}
        for _ in range(80):
            cluster.clock.advance(random.choice((0, 0, 1)))
            name = random.choice(sorted(keys))
            if random.random() < 0.3:
                keys[name] = await prepared(coordinator, name, keys[name])
            else:
                await begin(coordinator, name, keys[name])
        for order in wire.ListTransactionsOrder.values():
            whole = await ask(coordinator, Request(order=order))
            assert isinstance(whole, wire.ListTransactionsResponse)
            positions = [ListPosition.parsed(each.position) for each in whole.transactions]
            assert None not in positions
            places = [
                position.by_age if order else position.by_id
                for position in positions
                if position is not None
            ]
            assert places == sorted(places)
            in_parts = [
                each
                async for page in pages(coordinator, Request(order=order, limit=5))
                for each in page
            ]
            entries = [
                f"{each.transactional_id} {each.producer_epoch}" for each in whole.transactions
            ]
            assert in_parts == entries
