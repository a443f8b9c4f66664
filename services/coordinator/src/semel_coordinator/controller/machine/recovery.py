"""What the controller does to an older copy of its volume before it serves. Pure.

Its metadata are older than what other instances keep, and they would refuse them. So it takes over
the newest image that one of them has, whole, under the next version, which they take as newer. What
it knows of the journals of instances is what their volumes say.
"""

from collections.abc import Iterator, Mapping

from semel_coordinator.controller.machine.records import (
    ClusterRecord,
    ControllerRecord,
    InstanceRecord,
    InternalPartitionRecord,
    TopicDeletedRecord,
    TopicRecord,
)
from semel_coordinator.controller.machine.state import ControllerState, InstanceKey, key_of
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_image import ClusterImage


def is_behind(state: ControllerState, image: ClusterImage) -> bool:
    """Whether others know better."""
    if state.cluster is None:
        return True
    if image.version != state.version:
        return image.version > state.version
    known = state.image()
    return (image.topics, image.internal_partitions) != (known.topics, known.internal_partitions)


def taken_over(
    state: ControllerState, image: ClusterImage, marks: Mapping[InstanceKey, JournalMark]
) -> Iterator[ControllerRecord]:
    """Yield what makes the metadata those of an image, if they are behind it."""
    behind = is_behind(state, image)
    version = image.version + 1 if behind else state.version
    if behind:
        yield from _topics(state, image, version)
        for internal in image.internal_partitions:
            yield InternalPartitionRecord(version=version, internal=internal)
    for instance in image.instances if behind else state.image().instances:
        key = key_of(instance)
        known = state.instances.get(key)
        mark = _newest(known, marks.get(key))
        yield InstanceRecord(
            version=version,
            instance=instance,
            claim_epoch=mark.claim_epoch,
            claim_token=mark.claim_token,
            journal_end_offset=mark.end_offset,
        )
    # The cluster comes last, with the version: so every one that is newer is above it.
    yield ClusterRecord(version=version, cluster_id=image.cluster_id, layout=image.layout)


def _newest(known: InstanceRecord | None, mark: JournalMark | None) -> JournalMark:
    """Return the known mark of a journal, or the mark of its volume, if that is newer."""
    if known is None:
        return mark or JournalMark(claim_epoch=0, claim_token="", end_offset=0)
    return mark if mark is not None and mark.claim_epoch > known.claim_epoch else known.mark


def _topics(
    state: ControllerState, image: ClusterImage, version: int
) -> Iterator[ControllerRecord]:
    named = {topic.topic_id for topic in image.topics}
    for topic_id in state.topics:
        if topic_id not in named:
            yield TopicDeletedRecord(version=version, topic_id=topic_id)
    for topic in image.topics:
        yield TopicRecord(version=version, topic=topic)
