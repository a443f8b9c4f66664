"""Answers the RPCs of transactions: checks the form of requests, runs the machine, waits.

Nothing is decided here. Every field is checked before the machine sees it; every answer is given
when what it says is durable. Before `claim`, everything is answered COORDINATOR_LOAD_IN_PROGRESS.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice

import structlog

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    CoordinatorLoadInProgressError,
    InconsistentClusterIdError,
    RequestTimedOutError,
)
from semel_common.ids import TopicPartition
from semel_common.wire.methods import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    INQUIRE_TRANSACTIONS,
    LIST_TRANSACTIONS,
)
from semel_common.wire.status import to_value
from semel_coordinator.controller.rpc.current_topics import TopicsNow
from semel_coordinator.transactions.machine import (
    InitProducerId,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    ListFilter,
    Outcome,
    TransactionKey,
    TransactionLimits,
    TransactionListing,
    TransactionsMachine,
)
from semel_coordinator.transactions.markers import MarkerSender
from semel_coordinator.transactions.rpc import requests, responses
from semel_coordinator.transactions.rpc.get_transaction_outcome import OutcomeService
from semel_coordinator.transactions.rpc.joint.joint_service import JointService
from semel_coordinator.transactions.rpc.operator_rpcs import OperatorsService
from semel_coordinator.transactions.rpc.participant_names import TopicNames, has_names
from semel_coordinator.transactions.rpc.prepare_txn import PreparedService
from semel_coordinator.transactions.rpc.requests import traceparent
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.pages import Page, check_token, names_after, no_room

log = structlog.get_logger(__name__)

_LIST_PIECE = 1_000
"""Transactional ids that a list looks at in one go, a few milliseconds."""
_LIST_PIECE_WITH_PATTERN = 50
"""The same with a pattern, of which the worst may take milliseconds for each."""


class TransactionsService:
    """The handlers of CoordinatorService."""

    def __init__(
        self,
        *,
        runner: Runs,
        machine: TransactionsMachine,
        cluster: ClusterCopy,
        topics_now: TopicsNow,
        markers: MarkerSender,
        clock: Clock,
        limits: TransactionLimits,
    ) -> None:
        """Answer by the machine; `claim` comes first."""
        self._runner = runner
        self._machine = machine
        self._cluster = cluster
        self._names = TopicNames(topics_now)
        self._markers = markers
        self._clock = clock
        self._limits = limits
        self._claimed = False
        self._joint = JointService(
            runner=runner,
            machine=machine,
            names=self._names,
            clock=clock,
            limits=limits,
            check_claimed=self._check_claimed,
            wait_complete=self._wait_complete,
        )
        self._prepared = PreparedService(
            runner=runner,
            machine=machine,
            names=self._names,
            clock=clock,
            limits=limits,
            check_claimed=self._check_claimed,
            wait_complete=self._wait_complete,
        )
        self._outcome = OutcomeService(
            runner=runner,
            machine=machine,
            clock=clock,
            limits=limits,
            check_claimed=self._check_claimed,
        )
        self._operators = OperatorsService(
            runner=runner,
            machine=machine,
            clock=clock,
            limits=limits,
            check_claimed=self._check_claimed,
        )

    def register(self, handlers: Handlers) -> None:
        """Add a handler for each RPC."""
        handlers.add(INIT_PRODUCER_ID, self.init_producer_id)
        handlers.add(ADD_PARTITIONS_TO_TXN, self.add_partitions_to_txn)
        handlers.add(ADD_OFFSETS_TO_TXN, self.add_offsets_to_txn)
        handlers.add(END_TXN, self.end_txn)
        self._prepared.register(handlers)
        handlers.add(INQUIRE_TRANSACTIONS, self.inquire_transactions)
        handlers.add(DESCRIBE_TRANSACTIONS, self.describe_transactions)
        handlers.add(LIST_TRANSACTIONS, self.list_transactions)
        self._outcome.register(handlers)
        self._operators.register(handlers)
        self._joint.register(handlers)

    async def claim(self) -> None:
        """Take charge of this instance's transaction-log partitions; then requests are served.

        To be called once at each start, as soon as the cluster's layout is known; before that it
        raises CoordinatorNotAvailableError.
        """
        await self._runner.run(self._machine.moves.follow, privileged=True)
        partitions = await self._runner.run(self._machine.claim, privileged=True)
        self._claimed = True
        log.info("transaction-log partitions claimed", partitions=partitions)

    # -- producers -----------------------------------------------------------------------------

    async def init_producer_id(
        self, request: wire.InitProducerIdRequest, call: Call
    ) -> wire.InitProducerIdResponse:
        """Give a producer its id and epoch."""
        self._check_claimed()
        wait = requests.wait_for(request.wait)
        if not request.HasField("transactional_id"):
            return responses.init_producer_id(
                await self._runner.run(self._machine.give_producer_id)
            )
        init = InitProducerId(
            transactional_id=requests.transactional_id(request.transactional_id, self._limits),
            instance_id=requests.instance_id(request.instance_id, self._limits),
            init_number=requests.init_number(request.init_number),
            timeout_ms=request.transaction_timeout_ms,
            keep_prepared=request.keep_prepared,
            principal=str(call.origin.principal),
        )
        now_ms = self._clock.now_ms()
        key = await self._runner.run(lambda: self._machine.init_producer_id(init, now_ms=now_ms))
        if wait != wire.WAIT_FOR_DECIDED:
            await self._wait_complete(
                lambda: self._machine.is_complete_below(*key), key.producer_id, call, {}
            )
        expiration_ms = self._limits.transactional_id_expiration_ms
        if not request.keep_prepared:
            return responses.init_producer_id(key, expiration_ms=expiration_ms)
        prepared = await self._runner.run(lambda: self._machine.prepared_before(key))
        return responses.init_producer_id(key, prepared, expiration_ms=expiration_ms)

    # -- transactions --------------------------------------------------------------------------

    async def add_partitions_to_txn(
        self, request: wire.AddPartitionsToTxnRequest, call: Call
    ) -> wire.AddPartitionsToTxnResponse:
        """Register partitions: all of them, or none."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.producer_epoch)
        if has_names(request.topics):
            await self._names.give_ids([request.topics], call)
        partitions = requests.partitions(request.topics, self._limits)
        self._check_known(partitions)
        now_ms = self._clock.now_ms()
        await self._runner.run(
            lambda: self._machine.add_partitions_to_txn(
                transactional_id,
                key,
                partitions,
                traceparent=traceparent(call),
                now_ms=now_ms,
            )
        )
        return wire.AddPartitionsToTxnResponse()

    async def add_offsets_to_txn(
        self, request: wire.AddOffsetsToTxnRequest, call: Call
    ) -> wire.AddOffsetsToTxnResponse:
        """Register a consumer group."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.producer_epoch)
        group_id = requests.group_id(request.group_id, self._limits)
        now_ms = self._clock.now_ms()
        await self._runner.run(
            lambda: self._machine.add_offsets_to_txn(
                transactional_id, key, group_id, traceparent=traceparent(call), now_ms=now_ms
            )
        )
        return wire.AddOffsetsToTxnResponse()

    async def end_txn(self, request: wire.EndTxnRequest, call: Call) -> wire.EndTxnResponse:
        """Decide a transaction."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.producer_epoch)
        wait = requests.wait_for(request.wait)
        commit = requests.result(request.result) == participants_pb2.TRANSACTION_RESULT_COMMIT
        if has_names(request.participants.topics):
            # The participants in the repeat of a decided request do not count.
            missing_ok = not commit or self._is_past(key)
            await self._names.give_ids([request.participants.topics], call, missing_ok=missing_ok)
        participants = requests.participants(request, self._limits, commit=commit)
        self._log_if_never_given(key, "EndTxn")
        now_ms = self._clock.now_ms()
        next_key = await self._runner.run(
            lambda: self._machine.end_txn(
                transactional_id,
                key,
                commit=commit,
                participants=participants,
                traceparent=traceparent(call),
                now_ms=now_ms,
            )
        )
        if wait == wire.WAIT_FOR_COMPLETE:
            outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
            facts = {"outcome": outcome.value, "next_epoch": next_key.producer_epoch}
            await self._wait_complete(
                lambda: self._machine.is_complete(key), key.producer_id, call, facts
            )
        return responses.end_txn(next_key)

    # -- participants and operators ------------------------------------------------------------

    async def inquire_transactions(
        self, request: wire.InquireTransactionsRequest, _call: Call
    ) -> wire.InquireTransactionsResponse:
        """Tell a participant what became of transactions."""
        self._check_claimed()
        if request.cluster_id != self._cluster.cluster_id:
            raise InconsistentClusterIdError(
                f"this instance belongs to cluster {self._cluster.cluster_id!r},"
                f" not to {request.cluster_id!r}"
            )
        inquiries = requests.inquiries(request, self._limits)
        now_ms = self._clock.now_ms()
        answers = await self._runner.run(
            lambda: self._machine.inquire_transactions(inquiries, now_ms=now_ms)
        )
        for inquiry, answer in zip(inquiries, answers, strict=True):
            _log_inquiry(inquiry, answer)
        response = responses.inquire_transactions(answers)
        if request.fences:
            fences = requests.fence_inquiries(request, self._limits)
            found = await self._runner.run(lambda: self._machine.upkeep.inquire_fences(fences))
            responses.write_fence_answers(found, response)
        return response

    async def describe_transactions(
        self, request: wire.DescribeTransactionsRequest, _call: Call
    ) -> wire.DescribeTransactionsResponse:
        """Describe one transactional id after the other, as many as an answer has room for."""
        self._check_claimed()
        page, missing = Page(0), self._markers.missing
        response = wire.DescribeTransactionsResponse()
        for name in requests.described_ids(request, self._limits):
            describe = partial(self._machine.describe_transactions, (name,))
            (found,) = await self._runner.run(describe)
            entry = responses.transactional_id_description(found, missing=missing)
            if not page.takes(entry):
                refused = no_room(f"transactional id {name!r}")
                entry = wire.TransactionalIdDescription(
                    transactional_id=name, error=to_value(refused)
                )
            response.descriptions.append(entry)
            await asyncio.sleep(0)
        return response

    async def list_transactions(
        self, request: wire.ListTransactionsRequest, _call: Call
    ) -> wire.ListTransactionsResponse:
        """List a page of transactional ids, in pieces, so that other callers wait little."""
        self._check_claimed()
        wanted = requests.list_filter(request)
        page, token = Page(request.limit), check_token(request.page_token)
        candidates = await self._runner.run(lambda: self._machine.list_candidates(wanted))
        names = await names_after(candidates, token)
        size = _LIST_PIECE if wanted.matches is None else _LIST_PIECE_WITH_PATTERN
        response = wire.ListTransactionsResponse()
        while piece := list(islice(names, size)):
            found = await self._list(piece, wanted)
            for name, listings in groupby(found, key=lambda each: each.transactional_id):
                entries = [responses.transaction_listing(listing) for listing in listings]
                if not page.takes(*entries):
                    response.next_page_token = token
                    return response
                response.transactions.extend(entries)
                token = name
            await asyncio.sleep(0)
        return response

    # -- helpers -------------------------------------------------------------------------------

    async def _list(self, names: Sequence[str], wanted: ListFilter) -> list[TransactionListing]:
        now_ms = self._clock.now_ms()
        return await self._runner.run(
            lambda: self._machine.list_transactions(names, wanted, now_ms=now_ms)
        )

    async def _wait_complete(
        self,
        is_complete: Callable[[], bool],
        producer_id: int,
        call: Call,
        facts: Mapping[str, str | int],
    ) -> None:
        """Wait until markers are written, as long as the caller does.

        Raises RequestTimedOutError with the definite part of the answer; a repeat waits on.
        """
        if await self._runner.run(lambda: Result(is_complete())):
            return
        longest_ms = self._limits.completion_wait_ms
        timeout_ms = min(longest_ms, call.remaining_ms(longest_ms))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    completion = self._markers.completion_of(producer_id)
                    if await self._runner.run(lambda: Result(is_complete())):
                        return
                    await completion.wait()
        except TimeoutError:
            raise RequestTimedOutError(
                f"decided, but not all markers of producer id {producer_id} were written in"
                f" {timeout_ms} ms",
                **facts,
            ) from None

    def _check_claimed(self) -> None:
        if not self._claimed:
            raise CoordinatorLoadInProgressError("this coordinator has not taken charge yet")

    def _check_known(self, partitions: Sequence[TopicPartition]) -> None:
        """Raise UnknownTopicIdError or UnknownTopicOrPartitionError."""
        for partition in partitions:
            self._cluster.leader_of(partition)

    def _is_past(self, key: TransactionKey) -> bool:
        current_epoch = self._machine.current_epoch(key.producer_id)
        return current_epoch is not None and key.producer_epoch < current_epoch

    def _log_if_never_given(self, key: TransactionKey, request: str) -> None:
        current_epoch = self._machine.current_epoch(key.producer_id)
        if current_epoch is not None and key.producer_epoch > current_epoch:
            _log_never_given(key, request, current_epoch)


def _log_inquiry(inquiry: Inquiry, answer: InquiryAnswer) -> None:
    if answer.outcome is InquiryOutcome.NEVER_GIVEN:
        _log_never_given(inquiry.key, "InquireTransactions", answer.current_epoch)


def _log_never_given(key: TransactionKey, request: str, current_epoch: int) -> None:
    log.error(
        "producer epoch was never given out: a broken or hostile client",
        request=request,
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        current_epoch=current_epoch,
    )
