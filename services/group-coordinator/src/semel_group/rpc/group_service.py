"""The RPCs of the group coordinator, each with the object that answers it."""

from dataclasses import dataclass

from semel_common.wire import methods
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
from semel_runtime.server.calls import Handlers

AUDITED = {
    method.path: method.name
    for method in (methods.COMMIT_OFFSETS, methods.DELETE_OFFSETS, methods.DELETE_GROUPS)
}
"""The names of the audited RPCs, by path. Of commits, only those of an operator are noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupService:
    """Everything that answers calls of a group coordinator."""

    receiver: HeartbeatReceiver
    committer: OffsetCommitter
    txn_committer: TxnOffsetCommitter
    fetcher: OffsetFetcher
    marker_writer: MarkerWriter
    lister: GroupLister
    describer: GroupDescriber
    offset_deleter: OffsetDeleter
    group_deleter: GroupDeleter
    giver: GroupsGiver

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        handlers.add(methods.CONSUMER_GROUP_HEARTBEAT, self.receiver.consumer_group_heartbeat)
        handlers.add(methods.COMMIT_OFFSETS, self.committer.commit_offsets)
        handlers.add(methods.FETCH_OFFSETS, self.fetcher.fetch_offsets)
        handlers.add(methods.TXN_OFFSET_COMMIT, self.txn_committer.txn_offset_commit)
        handlers.add(methods.GROUP_WRITE_TXN_MARKERS, self.marker_writer.write_txn_markers)
        handlers.add(methods.LIST_GROUPS, self.lister.list_groups, is_list=True)
        handlers.add(methods.DESCRIBE_GROUPS, self.describer.describe_groups, is_list=True)
        handlers.add(methods.DELETE_OFFSETS, self.offset_deleter.delete_offsets)
        handlers.add(methods.DELETE_GROUPS, self.group_deleter.delete_groups)
        handlers.add(methods.HAND_OVER_GROUPS, self.giver.hand_over_groups)
