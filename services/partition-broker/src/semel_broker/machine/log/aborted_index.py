"""The aborted-transaction index of one log: which batches no committed read may see.

A transaction is a (producer id, epoch), and all of it aborts, so a lookup takes one step. There is
a second range for the same pair only after an epoch that was never given out.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, dropwhile

from semel_broker.machine.records import AbortedTransaction


class AbortedIndex:
    """Aborted transactions, in the order of their markers."""

    __slots__ = ("_by_transaction",)

    def __init__(self) -> None:
        # An OrderedDict, because a dict's first item costs as many steps as were deleted before it.
        self._by_transaction: OrderedDict[tuple[int, int], tuple[AbortedTransaction, ...]] = (
            OrderedDict()
        )

    def __len__(self) -> int:
        return len(self._by_transaction)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        """Iterate over the present entries; entries that come meanwhile do not count."""
        return chain.from_iterable(tuple(self._by_transaction.values()))

    def add(self, aborted: AbortedTransaction) -> None:
        """Note a transaction whose marker is the newest of the log."""
        key = (aborted.producer_id, aborted.producer_epoch)
        self._by_transaction[key] = (*self._by_transaction.pop(key, ()), aborted)

    def covers(self, producer_id: int, producer_epoch: int, offset: int) -> bool:
        """Whether the transactional batch at ``offset`` was aborted."""
        ranges = self._by_transaction.get((producer_id, producer_epoch))
        return ranges is not None and any(
            each.first_offset <= offset <= each.last_offset for each in ranges
        )

    def above(self, offset: int) -> "AbortedIndex":
        """Return an index without the transactions that lie below an offset as a whole.

        This one stays as it is: a reader that uses it may have read batches that are gone
        meanwhile.
        """
        oldest = next(iter(self._by_transaction.values()), None)
        if oldest is None or oldest[-1].last_offset >= offset:
            return self
        kept = AbortedIndex()
        kept._by_transaction.update(
            dropwhile(lambda each: each[1][-1].last_offset < offset, self._by_transaction.items())
        )
        return kept
