"""The loop that asks coordinators, whatever the participant is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from participant_harness import two_coordinators
from structlog.testing import capture_logs

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import KafkaStorageError, NotCoordinatorError
from semel_common.ids import GroupId, producer_id_of
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_runtime.participant.inquiry import InquiryAnswer, InquiryOutcome, OpenTransactionAt
from semel_runtime.participant.inquiry_loop import InquiryLoop, InquiryOptions
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import after, in_virtual_time

GROUP = GroupId("group")
COMMITTED = wire.InquiryAnswer(outcome=wire.INQUIRY_OUTCOME_COMMITTED, coordinator_epoch=2)
LATER = wire.InquiryAnswer(outcome=wire.INQUIRY_OUTCOME_LATER)

At = OpenTransactionAt[GroupId]
Request: TypeAlias = wire.InquireTransactionsRequest
Response: TypeAlias = wire.InquireTransactionsResponse


def open_at(coordinator: int, epoch: int = 0) -> At:
    """A transaction of a producer that one of two coordinators is in charge of."""
    return OpenTransactionAt(GROUP, producer_id_of(coordinator, 1), epoch)


@dataclass(slots=True)
class Transactions:
    """A test sets the open and due transactions. Implements ``Inquirer``."""

    open: list[At] = field(default_factory=list)
    due_now: bool = True
    looked: int = 0
    applied: list[InquiryAnswer[GroupId]] = field(default_factory=list)
    refusal: KafkaStorageError | None = None

    def opens_transaction(self, record: str) -> bool:
        return record == "opened"

    def has_open_transactions(self) -> bool:
        return bool(self.open)

    async def due(self, awaited: Collection[At]) -> Sequence[At]:
        self.looked += 1
        return [each for each in self.open if self.due_now or each in awaited]

    async def apply(
        self, answers: Sequence[InquiryAnswer[GroupId]]
    ) -> Sequence[InquiryAnswer[GroupId]]:
        if self.refusal is not None:
            raise self.refusal
        self.applied += answers
        ended = [answer for answer in answers if answer.transaction in self.open]
        for each in ended:
            self.open.remove(each.transaction)
        return ended


@dataclass(slots=True)
class Asking:
    """A loop that runs, and the coordinators that it asks."""

    transactions: Transactions
    loop: InquiryLoop[GroupId, str]
    network: MemoryNetwork
    answer: Callable[[wire.Inquiry], wire.InquiryAnswer] = lambda _: COMMITTED
    asked: list[list[int]] = field(default_factory=list)
    """The producer epochs of each request."""

    def open(self, *transactions: At) -> None:
        """Let transactions begin."""
        self.transactions.open += transactions
        self.loop.on_durable(["other", "opened"])

    def serve(self, coordinator: int) -> None:
        """Let a coordinator answer."""
        self.serve_with(coordinator, self._inquire)

    def silence(self, coordinator: int) -> None:
        """Let a coordinator never answer."""

        async def wait(_: Request, __: Call) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

        self.serve_with(coordinator, wait)

    def delay(self, coordinator: int, delay_ms: int) -> None:
        """Let a coordinator note at once what it is asked, and take its time to answer."""

        async def wait(request: Request, call: Call) -> Response:
            answer = await self._inquire(request, call)
            await after(delay_ms)
            return answer

        self.serve_with(coordinator, wait)

    def serve_with(
        self,
        coordinator: int,
        handler: Callable[[Request, Call], Awaitable[Response]],
    ) -> None:
        """Let a coordinator do what is given with each request."""
        handlers = Handlers()
        handlers.add(INQUIRE_TRANSACTIONS, handler)
        self.network.serve(f"coordinator-{coordinator}:1", handlers)

    async def _inquire(self, request: Request, _: Call) -> Response:
        assert request.cluster_id == "cluster"
        self.asked.append([inquiry.producer_epoch for inquiry in request.inquiries])
        answers = [self.answer(inquiry) for inquiry in request.inquiries]
        return Response(answers=answers)


@asynccontextmanager
async def asking(*transactions: At) -> AsyncIterator[Asking]:
    network, participant = MemoryNetwork(), Transactions([*transactions])
    options = InquiryOptions(tick_ms=100, interval_ms=10_000, retry_ms=200)
    loop: InquiryLoop[GroupId, str] = InquiryLoop(
        participant, two_coordinators(), connector=network, random=Random(1), options=options
    )
    each = Asking(participant, loop, network)
    for coordinator in range(2):
        each.serve(coordinator)
    task = asyncio.create_task(loop.run())
    yield each
    task.cancel()
    await asyncio.wait([task])
    await network.close()
    assert task.cancelled()


def test_the_numbers_of_outcomes_are_the_protocol_s() -> None:
    for outcome in InquiryOutcome:
        number: int = wire.InquiryOutcome.Value(f"INQUIRY_OUTCOME_{outcome.name}")
        assert number == outcome.value


@in_virtual_time
async def test_a_transaction_open_at_the_start_gets_its_outcome() -> None:
    async with asking(open_at(0)) as each:
        await after(150)
        assert each.transactions.applied == [
            InquiryAnswer(
                transaction=open_at(0), outcome=InquiryOutcome.COMMITTED, coordinator_epoch=2
            )
        ]


@in_virtual_time
async def test_the_loop_sleeps_while_nothing_is_open() -> None:
    async with asking() as each:
        await after(60_000)
        each.loop.on_durable(["other"])
        await after(60_000)
        assert each.transactions.looked == 0
        each.open(open_at(0))
        await after(150)
        looked = each.transactions.looked
        assert looked >= 1
        await after(60_000)
        assert each.transactions.looked <= looked + 1


@in_virtual_time
async def test_all_that_is_due_at_a_coordinator_goes_into_one_request() -> None:
    async with asking() as each:
        each.open(open_at(0, 1), open_at(1, 5), open_at(0, 2), open_at(1, 6))
        await after(150)
        assert sorted(each.asked) == [[1, 2], [5, 6]]


@in_virtual_time
async def test_one_request_asks_about_a_thousand_the_next_about_the_rest() -> None:
    async with asking() as each:
        each.open(*(open_at(0, epoch) for epoch in range(1_500)))
        await after(350)
        assert [len(epochs) for epochs in each.asked] == [1_000, 500]


@in_virtual_time
async def test_looking_at_very_many_takes_little_of_the_time() -> None:
    async with asking(*(open_at(0, epoch) for epoch in range(10_000))) as it:
        it.serve(0)
        it.answer = lambda _: wire.InquiryAnswer(
            outcome=wire.INQUIRY_OUTCOME_ONGOING, time_left_ms=60_000
        )
        await after(3_000)
        assert {epoch for request in it.asked for epoch in request} == set(range(10_000))
        looked = it.transactions.looked
        await after(6_000)
        assert it.transactions.looked - looked <= 4


@in_virtual_time
async def test_a_waiting_reader_does_not_wait_for_the_tick() -> None:
    async with asking() as each:
        each.transactions.due_now = False
        each.open(open_at(0))
        await after(1_000)
        assert each.asked == []
        each.loop.ask_now([])
        each.loop.ask_now([open_at(0)])
        await after(1)
        assert each.asked == [[0]]


@in_virtual_time
async def test_an_undecided_transaction_is_asked_about_again_after_a_while() -> None:
    async with asking() as each:
        each.answer = lambda _: LATER
        each.open(open_at(0))
        await after(1_100)
        assert 3 <= len(each.asked) <= 8


@in_virtual_time
async def test_an_ongoing_transaction_is_asked_about_after_the_interval_or_its_time_left() -> None:
    async with asking() as each:
        times_left = iter([60_000, 2_000])
        each.answer = lambda _: (
            wire.InquiryAnswer(outcome=wire.INQUIRY_OUTCOME_ONGOING, time_left_ms=left)
            if (left := next(times_left, 0))
            else COMMITTED
        )
        each.open(open_at(0))
        await after(7_900)
        assert len(each.asked) == 1
        await after(2_400)
        assert len(each.asked) == 2
        await after(2_200)
        assert len(each.asked) == 3


@in_virtual_time
async def test_a_coordinator_that_does_not_answer_holds_up_only_its_own_transactions() -> None:
    async with asking() as each:
        each.silence(1)
        each.open(open_at(1))
        await after(150)
        each.open(open_at(0))
        await after(150)
        assert each.transactions.open == [open_at(1)]
        each.serve(1)
        await after(6_000)
        assert each.transactions.open == []


@in_virtual_time
async def test_a_coordinator_has_one_request_at_a_time() -> None:
    async with asking() as each:
        each.delay(0, 1_000)
        each.open(open_at(0))
        await after(900)
        assert each.asked == [[0]]


@in_virtual_time
async def test_a_slow_coordinator_is_asked_the_rest_as_soon_as_it_has_answered() -> None:
    async with asking() as each:
        each.delay(0, 450)
        each.open(*(open_at(0, epoch) for epoch in range(10_000)))
        await after(700)
        assert [len(epochs) for epochs in each.asked] == [1_000, 1_000]


@in_virtual_time
async def test_what_a_coordinator_leaves_unanswered_is_asked_again() -> None:
    async with asking() as each:

        async def answer_nothing(_: Request, __: Call) -> Response:
            return Response()

        each.serve_with(0, answer_nothing)
        each.open(open_at(0))
        await after(150)
        each.serve(0)
        await after(400)
        assert each.transactions.open == []


@in_virtual_time
async def test_of_a_coordinator_that_is_away_the_first_failure_is_told() -> None:
    with capture_logs() as logs:
        async with asking() as each:
            each.network.cut("coordinator-0:1")
            each.open(open_at(0))
            await after(2_000)
            each.serve(0)
            await after(300)
            assert each.transactions.open == []
    complaints = [log["log_level"] for log in logs if log["event"].startswith("coordinator cannot")]
    assert complaints[0] == "warning"
    assert len(complaints) > 2
    assert set(complaints[1:]) == {"debug"}


@in_virtual_time
async def test_a_coordinator_that_refuses_is_asked_again() -> None:
    async with asking() as each:
        refusals = iter([NotCoordinatorError("not me")])

        def answer(_: wire.Inquiry) -> wire.InquiryAnswer:
            for refusal in refusals:
                raise refusal
            return COMMITTED

        each.answer = answer
        each.open(open_at(0))
        await after(500)
        assert each.transactions.open == []


@in_virtual_time
async def test_an_answer_that_cannot_be_applied_is_asked_for_again() -> None:
    async with asking() as each:
        each.transactions.refusal = KafkaStorageError("disk is full")
        each.open(open_at(0))
        await after(150)
        each.transactions.refusal = None
        await after(400)
        assert each.transactions.open == []


@in_virtual_time
async def test_an_epoch_that_was_never_given_is_a_warning() -> None:
    with capture_logs() as logs:
        async with asking(open_at(0, 9)) as each:
            each.answer = lambda _: wire.InquiryAnswer(
                outcome=wire.INQUIRY_OUTCOME_NEVER_GIVEN, coordinator_epoch=1, current_epoch=3
            )
            await after(150)
            (applied,) = each.transactions.applied
            assert (applied.outcome, applied.current_epoch) == (InquiryOutcome.NEVER_GIVEN, 3)
    (ended,) = [log for log in logs if log["event"] == "transaction ended by inquiry"]
    assert (ended["log_level"], ended["group_id"]) == ("warning", "group")
