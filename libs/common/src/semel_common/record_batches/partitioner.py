"""Which partition a key belongs to: Kafka's default partitioner, the same in every language."""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Hash with 32-bit murmur2 and Kafka's seed; returns 0 to 2^32 - 1.

    Source: Kafka ``org.apache.kafka.common.utils.Utils.murmur2``.
    """
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for word in memoryview(data)[:whole].cast("I") if _LITTLE_ENDIAN else _words(data, whole):
        k = (word * _M) & _MASK
        k ^= k >> 24
        h = ((h * _M) & _MASK) ^ ((k * _M) & _MASK)
    rest = length & 3
    if rest:
        h ^= int.from_bytes(data[whole:], "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def key_hash(key: bytes) -> int:
    """Return the hash of a key that is spread over partitions: 31 bits, not negative."""
    return murmur2(key) & 0x7FFFFFFF


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition of a key, 0 to ``partition_count`` - 1."""
    return key_hash(key) % partition_count


def _words(data: bytes, whole: int) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]


_LITTLE_ENDIAN = memoryview(b"\x01\x00\x00\x00").cast("I")[0] == 1
