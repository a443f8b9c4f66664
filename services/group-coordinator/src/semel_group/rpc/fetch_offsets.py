"""FetchOffsets: committed offsets of the named partitions, or of all in pages."""

from functools import partial

from semel.group.v1 import group_pb2 as wire
from semel_common.ids import GroupId, TopicPartition
from semel_common.wire.status import to_value
from semel_group.machine import GroupMachine
from semel_group.machine.offset_fetch import OffsetsPage
from semel_group.machine.records import Record
from semel_group.machine.values import Committer, FetchedOffset, NamedPartition
from semel_group.rpc.committers import committer
from semel_group.rpc.group_ids import group_id
from semel_group.rpc.partition_names import named_partitions
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_count
from semel_runtime.server.pages import Page, PageTokens, refuse_token

_OFFSETS_MAX = 1_000_000
"""Offsets in an answer to a request for all that names no limit: more than a message has room for,
so a client that knows no pages is given as many as a message takes."""


class OffsetFetcher:
    """Answers FetchOffsets."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        inquiries: InquiryLoop[GroupId, Record],
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._inquiries = inquiries

    async def fetch_offsets(
        self, request: wire.FetchOffsetsRequest, call: Call
    ) -> wire.FetchOffsetsResponse:
        """Answer committed offsets; ask at once how the transactions end that may move them."""
        del call
        page = Page(request.limit, unless_limited=_OFFSETS_MAX)
        decide = partial(
            self._machine.committed_offsets.fetch_offsets,
            reader(request),
            asked_partitions(request),
            require_stable=request.require_stable,
            page=OffsetsPage(_page_start(request), limit=page.items_max + 1),
        )
        fetched = await self._runner.run(decide)
        self._inquiries.ask_now(fetched.unstable)
        response = wire.FetchOffsetsResponse()
        for offset in fetched.offsets:
            entry = _fetched_offset(offset)
            if request.all_partitions and not page.takes(entry):
                last = response.offsets[-1]
                key = f"{last.topic_id}:{last.partition}"
                response.next_page_token = _tokens(request).after(key)
                break
            response.offsets.append(entry)
        return response


def reader(request: wire.FetchOffsetsRequest) -> Committer:
    """Return the caller; without a member id, its epoch says nothing."""
    if request.member_id:
        return committer(request)
    return Committer(group_id=group_id(request.group_id))


def asked_partitions(request: wire.FetchOffsetsRequest) -> list[NamedPartition] | None:
    """Return the partitions that a request names; None: all."""
    if request.all_partitions:
        require_count("topics", request.topics, maximum=0)
        return None
    return named_partitions(request.topics)


def _tokens(request: wire.FetchOffsetsRequest) -> PageTokens:
    return PageTokens("FetchOffsets", request.group_id)


def _page_start(request: wire.FetchOffsetsRequest) -> TopicPartition | None:
    """Return the partition behind which a page of offsets begins; None: at the first one."""
    if not request.all_partitions:
        refuse_token(request.page_token, unless="all_partitions")
    key = _tokens(request).key(request.page_token)
    if key is None:
        return None
    topic_id, _, number = key.rpartition(":")
    if not topic_id or not number.isdecimal() or int(number) > INT32_MAX:
        raise _tokens(request).unknown(request.page_token)
    return TopicPartition(topic_id, int(number))


def _fetched_offset(fetched: FetchedOffset) -> wire.FetchedOffset:
    """Return a committed offset, or the reason why the answer has none."""
    return wire.FetchedOffset(
        topic_id=fetched.topic.topic_id,
        topic=fetched.topic.topic,
        partition=fetched.partition,
        error=None if fetched.error is None else to_value(fetched.error),
        committed_offset=fetched.committed_offset,
        metadata=fetched.metadata,
    )
