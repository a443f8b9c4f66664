"""The sequences that producers have sent, so that no repeat of a request outlives all of them.

In a simulation, sequences begin again after a few records; in the product, after 2,147,483,648. No
request is under way for so long. A repeat that came after a whole round of a simulation would be
taken for the next batch, as the protocol says, so the network loses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.message import Message

from semel.broker.v1.broker_pb2 import ProducePartition, ProduceRequest
from semel_common.record_batches import sequence_numbers

_Key: TypeAlias = tuple[int, int, str, str, int]
"""Producer id and epoch; topic, topic id, and partition, as requests name them."""
Mark: TypeAlias = dict[_Key, int]
"""How many records a producer had sent to a partition before a request."""


@dataclass(slots=True)
class SequencesSent:
    """How far each producer has come, in records since the start of its epoch."""

    _ends: dict[_Key, int] = field(default_factory=dict)

    def note(self, request: Message) -> Mark:
        """Note the sequences of a request that is sent; return where they begin."""
        mark: Mark = {}
        if isinstance(request, ProduceRequest):
            for partition in request.partitions:
                for key, sequence, record_count in _sequences_of(partition):
                    begin = self._begin(key, sequence)
                    mark.setdefault(key, begin)
                    self._ends[key] = max(self._ends.get(key, 0), begin + record_count)
        return mark

    def is_outlived(self, mark: Mark) -> bool:
        """Whether a producer has since sent so much that the sequences began again."""
        return any(
            self._ends[key] - begin >= sequence_numbers.SEQUENCES for key, begin in mark.items()
        )

    def _begin(self, key: _Key, sequence: int) -> int:
        """Return how many records came before a sequence: it is new, or of a few records ago."""
        end, sequences = self._ends.get(key, 0), sequence_numbers.SEQUENCES
        ahead = (sequence - end) % sequences
        return end + ahead - (sequences if ahead >= sequences // 2 else 0)


def _sequences_of(partition: ProducePartition) -> Iterator[tuple[_Key, int, int]]:
    place = (partition.topic, partition.topic_id, partition.partition)
    for batch in partition.batches:
        if batch.producer_id:
            key = (batch.producer_id, batch.producer_epoch, *place)
            yield key, batch.base_sequence, batch.record_count
    plain = partition.records
    if plain.producer_id:
        key = (plain.producer_id, plain.producer_epoch, *place)
        yield key, plain.base_sequence, len(plain.records)
