"""What compaction sees of a batch. Pure."""

from collections.abc import Sequence

from msgspec import Struct

NO_HORIZON = 0
"""Nothing in the batch waits to be removed."""


class KeyedRecords(Struct, frozen=True, kw_only=True):
    """The records of one batch, as columns of the same length."""

    offsets: Sequence[int]
    """Ascending."""
    keys: Sequence[bytes | None]
    tombstones: Sequence[bool]
    """Which have no value: they delete their key."""


class BatchContent(Struct, frozen=True, kw_only=True):
    """One batch of a log, below its last stable offset."""

    end_offset: int
    """The offset behind it."""
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: bool
    """A marker."""
    aborted: bool
    """Written in a transaction that was aborted."""
    delete_horizon_ms: int
    """When its tombstones, or the marker, may go: set by the pass that has first removed everything
    that they have done away with."""
    records: KeyedRecords | None
    """None if there are no visible records: for a marker, for an aborted batch, or if the payload
    cannot be opened.
    """

    @property
    def transaction(self) -> tuple[int, int]:
        """Producer id and epoch: the transaction it belongs to, if it is transactional."""
        return self.producer_id, self.producer_epoch
