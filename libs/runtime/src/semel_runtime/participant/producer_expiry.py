"""Which producers a participant may forget. Pure.

Theory of operation. A participant keeps of every producer what refuses repeats and late messages.
Of one that was not heard of for ``producer.id.expiration.ms`` and has nothing open, it can go: of a
producer outside of transactions at once, as in Kafka. The fence of a producer with transactions
goes only when the coordinator has said that it is needless: that every decided commit below it is
complete. From then on, the coordinator aborts late transactions of such an epoch, because the
coordinator knows nothing of it. Before, an inquiry or a marker could still commit it, and a late
repeat of a batch that was committed long ago would be there twice.
"""

from typing import Generic, NamedTuple

from semel_runtime.participant.inquiry import P


class IdleProducer(NamedTuple, Generic[P]):
    """A producer that a participant was not told of for long."""

    participant: P
    producer_id: int
    fence: int

    @property
    def had_transactions(self) -> bool:
        """Whether an outcome of its transactions was seen: then its coordinator is asked first."""
        return self.fence > 0
