"""Codecs of batch payloads. zstd comes with the standard library from Python 3.14, else as an extra."""

from semel.common.v1.records_pb2 import Codec
from semel_common.errors import InvalidConfigError, MessageTooLargeError

try:
    from backports import zstd
except ImportError:  # the extra is not installed; whoever needs it is told so
    zstd = None  # type: ignore[assignment]  # the module is optional

PAYLOAD_SIZE_MAX_BYTES = 256 << 20
"""A payload that decompresses to more is refused: a small message must not fill the memory."""


def compress(payload: bytes, codec: Codec.ValueType) -> bytes:
    """Compress a payload."""
    return _zstd().compress(payload) if codec == Codec.CODEC_ZSTD else payload


def decompress(payload: bytes, codec: Codec.ValueType) -> bytes:
    """Undo ``compress``. Raises MessageTooLargeError past 256 MiB."""
    if codec != Codec.CODEC_ZSTD:
        return payload
    plain = _zstd().ZstdDecompressor().decompress(payload, PAYLOAD_SIZE_MAX_BYTES + 1)
    if len(plain) > PAYLOAD_SIZE_MAX_BYTES:
        raise MessageTooLargeError(f"payload is over {PAYLOAD_SIZE_MAX_BYTES} bytes when decompressed")
    return plain


def _zstd():  # noqa: ANN202 - the module zstd
    if zstd is None:
        raise InvalidConfigError("compression zstd needs the package backports.zstd: install aiosemel[zstd]")
    return zstd
