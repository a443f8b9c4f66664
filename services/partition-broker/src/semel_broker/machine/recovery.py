"""What a broker does to an older copy of its volume before it serves. Pure.

Theory of operation. Committed readers must find the records that they could see when the copy was
made, and nothing else. A transaction that was open then may have written more since, and that is
lost: if it committed now, readers would see a part of it. So all open transactions abort, and their
fences refuse producers that go on with one. Later appends are lost too, but readers have seen their
offsets, and groups have committed them: every log goes on above all of them, and leaves a gap that
readers pass over. A log that is not in the copy at all starts there.

What moves away is another matter: the broker that takes over may have copied records that are lost
here, and knows nothing of their transactions. So the move is given up first, and its copy dropped.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import LogDropped, LogEndMoved, LogState, Record
from semel_broker.machine.values import Outcome
from semel_common.errors import InvalidRequestError
from semel_common.ids import transaction_log_partition_of
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochs


class RaisedLogs(Struct, frozen=True, kw_only=True):
    """How many logs there are, by what becomes of them."""

    kept: int
    """They have what the copy has, and go on above a gap."""
    new: int
    """Led here, but not in the copy: all of it is lost."""
    dropped: int
    """Their topics were deleted since, or are led elsewhere."""


def all_aborted(logs: Iterable[PartitionLog], coordinators: CoordinatorEpochs) -> Iterator[Outcome]:
    """Yield what aborts each open transaction, in the name of the newest owner that is known."""
    for log in logs:
        for open_transaction in log.open_transactions.values():
            newest = coordinators.newest(transaction_log_partition_of(open_transaction.producer_id))
            yield Outcome(
                partition=log.partition,
                producer_id=open_transaction.producer_id,
                producer_epoch=open_transaction.producer_epoch,
                committed=False,
                coordinator_epoch=max(0, newest),
            )


def check_nothing_leaves(image: ClusterImage, instance_id: int) -> None:
    """Refuse while a partition moves away from here: its copy may have what is lost here.

    Raises InvalidRequestError.
    """
    for topic in image.topics:
        for index, leader in enumerate(topic.partitions):
            if leader.leader_id == instance_id and leader.moving_to is not None:
                raise InvalidRequestError(
                    f"partition {index} of topic {topic.name!r} moves from here to broker"
                    f" {leader.moving_to}, whose copy may have records that are lost here: cancel"
                    " the move first, with"
                    f" `semel topics move {topic.name} --partition {index} --cancel`"
                )


def raised(
    logs: LogDirectory,
    newer: Sequence[ClusterImage],
    changed: Sequence[LogState | LogDropped],
    floor: int,
) -> Result[RaisedLogs, Record]:
    """Let every log go on at the floor; `changed` is what the image makes of them.

    Copies that still move here are left out: their leader has the whole log, and the copy goes on
    at its end.
    """
    led_now = {each.log_id for each in changed if isinstance(each, LogState) and logs.leads(each)}
    known = {log.log_id for log in logs if logs.is_own(log) or log.log_id in led_now}
    moved = [LogEndMoved(log_id=each, log_end_offset=floor) for each in sorted(known)]
    created, others = [], []
    for record in changed:
        if isinstance(record, LogState) and record.log_id in led_now - known:
            created.append(replace(record, log_start_offset=floor, log_end_offset=floor))
        else:
            others.append(record)
    dropped = sum(isinstance(other, LogDropped) for other in others)
    counts = RaisedLogs(kept=len(known) - dropped, new=len(created), dropped=dropped)
    return Result(counts, (*newer, *moved, *others, *created))
