"""The group coordinator's RPCs: check the form, run a handler of the machine, answer."""

from functools import partial
from math import ceil

import structlog
from msgspec import structs

from semel.common.v1.participants_pb2 import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from semel.group.v1 import group_pb2 as wire
from semel_common.ids import GroupId
from semel_common.wire import methods
from semel_group.loops.free_partitions import FreePartitions
from semel_group.loops.session_timeouts import MemberSessions, loop_ms
from semel_group.machine import GroupMachine
from semel_group.machine.offset_fetch import OffsetsPage
from semel_group.machine.records import Record
from semel_group.machine.values import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatAnswer,
    MemberKey,
    RefusedMarker,
)
from semel_group.rpc import requests, responses
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import Reserve
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.pages import Page

log = structlog.get_logger(__name__)

_EVENTS = {
    JOIN_EPOCH: "member joined",
    LEAVE_EPOCH: "member left",
    STATIC_LEAVE_EPOCH: "member left for a while",
}

_OFFSETS_MAX = 1_000_000
"""Offsets in an answer to a request for all that names no limit: more than a message has room for,
so a client that knows no pages is given as many as a message takes."""


class MembershipService:
    """Answers heartbeats."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        sessions: MemberSessions,
        free: FreePartitions,
        clock: Clock,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        reconciling_heartbeat_interval_ms: int,
    ) -> None:
        """Serve groups of one machine."""
        self._runner = runner
        self._machine = machine
        self._sessions = sessions
        self._free = free
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._interval_ms = heartbeat_interval_ms
        self._reconciling_interval_ms = min(
            heartbeat_interval_ms, reconciling_heartbeat_interval_ms
        )

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        handlers.add(methods.CONSUMER_GROUP_HEARTBEAT, self.consumer_group_heartbeat)

    async def consumer_group_heartbeat(
        self, request: wire.ConsumerGroupHeartbeatRequest, call: Call
    ) -> wire.ConsumerGroupHeartbeatResponse:
        """Join, keep up, acknowledge or leave."""
        del call
        heartbeat = requests.heartbeat(request, arrived_ms=self._clock.now_ms())
        key = MemberKey(heartbeat.group_id, heartbeat.member_id)
        self._sessions.heard(key, loop_ms())
        heartbeat = structs.replace(
            heartbeat,
            overdue=self._free.overdue(key.group_id, loop_ms()),
            is_back=self._free.is_back(key),
        )
        decide = partial(self._machine.consumer_group_heartbeat, heartbeat)
        answer = await self._runner.run(decide)
        self._note(heartbeat, answer)
        speak_in_ms = self._speak_in_ms(heartbeat.group_id, answer)
        self._free.to_speak(key, speak_in_ms, loop_ms())
        response = wire.ConsumerGroupHeartbeatResponse(
            member_id=heartbeat.member_id,
            member_epoch=answer.member_epoch,
            heartbeat_interval_ms=speak_in_ms,
            session_timeout_ms=self._session_timeout_ms,
        )
        if answer.assignment is not None:
            assignment = responses.assignment(answer.assignment, self._machine.topics)
            response.assignment.CopyFrom(assignment)
        return response

    def _speak_in_ms(self, group_id: str, answer: HeartbeatAnswer) -> int:
        """Return when a member is to speak again: soon, if it waits, or once it can take more."""
        if not answer.settled:
            return self._reconciling_interval_ms
        in_ms = ceil(self._free.overdue_in_ms(group_id, loop_ms()))
        return min(in_ms if in_ms > 0 else self._reconciling_interval_ms, self._interval_ms)

    def _note(self, heartbeat: Heartbeat, answer: HeartbeatAnswer) -> None:
        key = MemberKey(heartbeat.group_id, heartbeat.member_id)
        self._free.answered(key, answer)
        if answer.member_epoch == LEAVE_EPOCH:
            self._sessions.forget(key)
        elif answer.member_epoch == STATIC_LEAVE_EPOCH:
            self._sessions.away(key, loop_ms())
        else:
            self._sessions.answered(key, answer, loop_ms())
        event = _EVENTS.get(heartbeat.member_epoch)
        if event is not None:
            log.info(
                event,
                group_id=key.group_id,
                member_id=key.member_id,
                instance_id=heartbeat.instance_id,
                member_epoch=answer.member_epoch,
            )


class OffsetsService:
    """Answers clients that commit and fetch offsets, and transaction coordinators."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        inquiries: InquiryLoop[GroupId, Record],
        clock: Clock,
    ) -> None:
        """Serve groups of one machine."""
        self._runner = runner
        self._machine = machine
        self._inquiries = inquiries
        self._clock = clock

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        handlers.add(methods.COMMIT_OFFSETS, self.commit_offsets)
        handlers.add(methods.FETCH_OFFSETS, self.fetch_offsets)
        handlers.add(methods.TXN_OFFSET_COMMIT, self.txn_offset_commit)
        handlers.add(methods.GROUP_WRITE_TXN_MARKERS, self.write_txn_markers)

    async def commit_offsets(
        self, request: wire.CommitOffsetsRequest, call: Call
    ) -> wire.CommitOffsetsResponse:
        """Commit offsets at once, each for itself."""
        del call
        refused = await self._runner.run(
            partial(
                self._machine.commit_offsets,
                requests.committer(request),
                requests.new_offsets(request.topics),
                now_ms=self._clock.now_ms(),
            ),
            may_use=Reserve.HALF,
        )
        return wire.CommitOffsetsResponse(errors=map(responses.refused_offset, refused))

    async def fetch_offsets(
        self, request: wire.FetchOffsetsRequest, call: Call
    ) -> wire.FetchOffsetsResponse:
        """Answer committed offsets; what an open transaction may move is inquired about at once."""
        del call
        page = Page(request.limit, unless_limited=_OFFSETS_MAX)
        fetched = await self._runner.run(
            partial(
                self._machine.fetch_offsets,
                requests.reader(request),
                requests.asked_partitions(request),
                require_stable=request.require_stable,
                page=OffsetsPage(
                    requests.offsets_page(request.page_token), limit=page.items_max + 1
                ),
            )
        )
        self._inquiries.ask_now(fetched.unstable)
        response = wire.FetchOffsetsResponse()
        for offset in fetched.offsets:
            entry = responses.fetched_offset(offset)
            if request.all_partitions and not page.takes(entry):
                last = response.offsets[-1]
                response.next_page_token = f"{last.topic_id}:{last.partition}"
                break
            response.offsets.append(entry)
        return response

    async def txn_offset_commit(
        self, request: wire.TxnOffsetCommitRequest, call: Call
    ) -> wire.TxnOffsetCommitResponse:
        """Hold offsets for a transaction, all or none."""
        del call
        commit = requests.txn_commit(request)
        await self._runner.run(
            partial(
                self._machine.txn_offset_commit,
                commit.committer,
                commit.transaction,
                commit.base_sequence,
                commit.offsets,
                now_ms=self._clock.now_ms(),
            ),
            may_use=Reserve.HALF,
        )
        return wire.TxnOffsetCommitResponse()

    async def write_txn_markers(
        self, request: WriteTxnMarkersRequest, call: Call
    ) -> WriteTxnMarkersResponse:
        """End transactions here; if no call waits for it behind the coordinator, it has time."""
        del call
        markers = requests.txn_markers(request)
        now_ms = self._clock.now_ms()

        def decide() -> Result[tuple[tuple[RefusedMarker, ...], ...], Record]:
            decided = self._machine.write_txn_markers(request.cluster_id, markers, now_ms=now_ms)
            return structs.replace(decided, patient=not request.awaited)

        refused = await self._runner.run(decide, privileged=True)
        return WriteTxnMarkersResponse(
            results=map(responses.marker_result, request.markers, refused)
        )
