"""Codecs of batch payloads.

zstd is in Python from 3.14 on; before, it is the package backports.zstd: brokers have it, for the
SDK it is an extra.
"""

import sys
from types import ModuleType

from semel.common.v1.records_pb2 import Codec
from semel_common.errors import InvalidConfigError, MessageTooLargeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    try:
        from backports import zstd
    except ImportError:  # the extra is not installed; whoever needs it is told so
        zstd = None  # type: ignore[assignment]  # the module is optional

PAYLOAD_SIZE_MAX_BYTES = 256 << 20
"""A payload that decompresses to more is refused: a small message must not fill the memory."""


def compress(payload: bytes, codec: Codec.ValueType) -> bytes:
    """Compress a payload."""
    if codec != Codec.CODEC_ZSTD:
        return payload
    compressed: bytes = _zstd().compress(payload)
    return compressed


def decompress(
    payload: bytes, codec: Codec.ValueType, *, size_max_bytes: int = PAYLOAD_SIZE_MAX_BYTES
) -> bytes:
    """Undo ``compress``. Raises MessageTooLargeError for what grows past ``size_max_bytes``."""
    if codec != Codec.CODEC_ZSTD:
        return payload
    plain: bytes = _zstd().ZstdDecompressor().decompress(payload, size_max_bytes + 1)
    if len(plain) > size_max_bytes:
        raise MessageTooLargeError(
            f"payload is over {size_max_bytes} bytes when decompressed",
            size_max_bytes=size_max_bytes,
        )
    return plain


def _zstd() -> ModuleType:
    if zstd is None:
        raise InvalidConfigError(
            "compression zstd needs the package backports.zstd: install aiosemel[zstd]"
        )
    return zstd
