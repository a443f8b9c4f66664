"""The newest offset of each key in a part of a log: the memory of a pass, and its bound. Pure."""

from hashlib import blake2b

from semel_broker.compaction.content import BatchContent

KEY_BYTES = 160
"""What a key takes in memory, about."""
_DIGEST_BYTES = 16
"""With so many, two keys with one digest do not occur."""


class KeyMap:
    """The newest offset of each key that has a record in some consecutive batches.

    Keys are held as digests, so that long ones take no more room.
    """

    def __init__(self, *, start: int, keys_max: int) -> None:
        """Begin at an offset, for about so many keys: the last batch may go over it."""
        self.upto = start
        """The offset behind the last batch that was added."""
        self._keys_max = keys_max
        self._newest: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._newest)

    @property
    def full(self) -> bool:
        """Whether there is no room for another batch: the pass ends at ``upto``."""
        return len(self._newest) >= self._keys_max

    def add(self, batch: BatchContent) -> None:
        """Take in the next batch."""
        self.upto = batch.end_offset
        if batch.records is None:
            return
        for offset, key in zip(batch.records.offsets, batch.records.keys, strict=True):
            if key is not None:
                self._newest[_digest(key)] = offset

    def reach(self, upto: int) -> None:
        """Note that there is nothing more below an offset."""
        self.upto = upto

    def has_newer(self, key: bytes, offset: int) -> bool:
        """Whether a record of the key lies above an offset."""
        return self._newest.get(_digest(key), offset) > offset


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES, usedforsecurity=False).digest()
