"""What a broker does to an older copy of its volume before it serves. Pure.

Theory of operation. Committed readers are to find what they could see when the copy was made, and
nothing else. A transaction that was open then may have written more since, and that is lost: if it
committed now, part of it would be seen. So all that are open abort, and their fences refuse whoever
goes on with one. What was appended since is lost too, but readers have seen its offsets, and groups
have committed them: every log goes on above all of them, and leaves a gap that readers pass over. A
log that is not in the copy at all starts there.

What moves away is another matter: the broker that takes over may have copied records that are lost
here, and knows nothing of their transactions. So the move is given up first, and its copy dropped.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from semel_broker.machine.directory import LogDirectory
from semel_broker.machine.log import PartitionLog
from semel_broker.machine.records import LogDropped, LogEndMoved, LogState, Record
from semel_broker.machine.values import Outcome
from semel_common.errors import InvalidRequestError
from semel_common.ids import transaction_log_partition_of
from semel_runtime.cluster.image import ClusterImage
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
        for each in log.open_transactions.values():
            newest = coordinators.newest(transaction_log_partition_of(each.producer_id))
            yield Outcome(
                partition=log.partition,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
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
                    f" {leader.moving_to}, whose copy may have what is lost here: give the move up"
                    f" first, with `semel topics move {topic.name} --partition {index} --cancel`"
                )


def raised(
    logs: LogDirectory,
    newer: Sequence[ClusterImage],
    changed: Sequence[LogState | LogDropped],
    floor: int,
) -> Result[RaisedLogs, Record]:
    """Let every log go on at the floor; `changed` is what the image makes of them.

    But for what still moves here: its leader has all of it, and the copy goes on where it ends.
    """
    led_now = {each.log_id for each in changed if isinstance(each, LogState) and logs.leads(each)}
    known = {log.log_id for log in logs if logs.is_own(log) or log.log_id in led_now}
    moved = [LogEndMoved(log_id=each, log_end_offset=floor) for each in sorted(known)]
    created, others = [], []
    for each in changed:
        if isinstance(each, LogState) and each.log_id in led_now - known:
            created.append(replace(each, log_start_offset=floor, log_end_offset=floor))
        else:
            others.append(each)
    dropped = sum(isinstance(each, LogDropped) for each in others)
    counts = RaisedLogs(kept=len(known) - dropped, new=len(created), dropped=dropped)
    return Result(counts, (*newer, *moved, *others, *created))
