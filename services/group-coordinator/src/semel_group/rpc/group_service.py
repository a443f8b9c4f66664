"""The RPCs of the group coordinator, each with the object that answers it."""

from semel_common.ids import GroupId
from semel_common.wire import methods
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc.commit_offsets import OffsetCommitter
from semel_group.rpc.consumer_group_heartbeat import HeartbeatReceiver
from semel_group.rpc.delete_groups import GroupDeleter
from semel_group.rpc.delete_offsets import OffsetDeleter
from semel_group.rpc.describe_groups import GroupDescriber
from semel_group.rpc.fetch_offsets import OffsetFetcher
from semel_group.rpc.hand_over_groups import GroupsGiver
from semel_group.rpc.list_groups import GroupLister
from semel_group.rpc.txn_offset_commit import TxnOffsetCommitter
from semel_group.rpc.write_txn_markers import MarkerWriter
from semel_runtime.clock import Clock
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Handlers


def bind(
    handlers: Handlers,
    runner: Runner[Record],
    machine: GroupMachine,
    clock: Clock,
    *,
    receiver: HeartbeatReceiver,
    inquiries: InquiryLoop[GroupId, Record],
    giver: GroupsGiver,
) -> None:
    """Register the handlers of a group coordinator."""
    committer = OffsetCommitter(runner, machine, clock)
    in_txn = TxnOffsetCommitter(runner, machine, clock)
    fetcher = OffsetFetcher(runner, machine, inquiries)
    writer = MarkerWriter(runner, machine, clock)
    handlers.add(methods.CONSUMER_GROUP_HEARTBEAT, receiver.consumer_group_heartbeat)
    handlers.add(methods.COMMIT_OFFSETS, committer.commit_offsets)
    handlers.add(methods.FETCH_OFFSETS, fetcher.fetch_offsets)
    handlers.add(methods.TXN_OFFSET_COMMIT, in_txn.txn_offset_commit)
    handlers.add(methods.GROUP_WRITE_TXN_MARKERS, writer.write_txn_markers)
    handlers.add(methods.LIST_GROUPS, GroupLister(runner, machine).list_groups)
    handlers.add(methods.DESCRIBE_GROUPS, GroupDescriber(runner, machine).describe_groups)
    handlers.add(methods.DELETE_OFFSETS, OffsetDeleter(runner, machine).delete_offsets)
    handlers.add(methods.DELETE_GROUPS, GroupDeleter(runner, machine).delete_groups)
    handlers.add(methods.HAND_OVER_GROUPS, giver.hand_over_groups)
