"""Codecs of batch payloads.

A compressed payload is exactly one zstd frame without a dictionary: a second frame, a skippable
frame, a dictionary id and bytes behind the frame are refused. The size that a frame declares is
checked before the frame is decompressed; the size that it grows to, during the decompression.

zstd is in Python from 3.14 on; before, it is the package backports.zstd: brokers have it, for the
SDK it is an extra.
"""

import sys
from types import ModuleType

from semel.common.v1.records_pb2 import Codec
from semel_common.errors import CorruptMessageError, InvalidConfigError, MessageTooLargeError
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    try:
        from backports import zstd
    except ImportError:  # the extra is not installed; the caller of compress or decompress is told
        zstd = None  # type: ignore[assignment]  # the module is optional

_FRAME_HEADER_MAX_BYTES = 18
_WINDOW_LOG_MIN = 23
"""Every decoder must take windows of 8 MiB (RFC 8878, section 3.1.1.1.2)."""


def compress(payload: bytes, codec: Codec.ValueType) -> bytes:
    """Compress a payload."""
    if codec != Codec.CODEC_ZSTD:
        return payload
    compressed: bytes = _zstd().compress(payload)
    return compressed


def declared_size(payload: bytes, codec: Codec.ValueType) -> int | None:
    """Return how many bytes a payload says that it opens to; None: it does not say.

    Only the first bytes are looked at. Raises CorruptMessageError for what begins no zstd frame,
    and for a frame that needs a dictionary.
    """
    if codec != Codec.CODEC_ZSTD:
        return len(payload)
    try:
        info = _zstd().get_frame_info(payload[:_FRAME_HEADER_MAX_BYTES])
    except _zstd().ZstdError as error:
        raise CorruptMessageError(f"payload does not begin with a zstd frame: {error}") from error
    if info.dictionary_id:
        raise CorruptMessageError(
            f"payload needs the zstd dictionary {info.dictionary_id}: compress without a dictionary"
        )
    size: int | None = info.decompressed_size
    return size


def check_declared_size(
    payload: bytes, codec: Codec.ValueType, *, size_max_bytes: int = OPENED_MAX_BYTES
) -> None:
    """Raise MessageTooLargeError for a payload that declares more; raises as ``declared_size``."""
    size_bytes = declared_size(payload, codec)
    if size_bytes is not None and size_bytes > size_max_bytes:
        raise MessageTooLargeError(
            f"payload declares {size_bytes} bytes when decompressed, over {size_max_bytes} bytes",
            size_bytes=size_bytes,
            size_max_bytes=size_max_bytes,
        )


def decompress(
    payload: bytes, codec: Codec.ValueType, *, size_max_bytes: int = OPENED_MAX_BYTES
) -> bytes:
    """Undo ``compress``.

    Raises MessageTooLargeError for a payload that declares, or grows to, more than
    ``size_max_bytes``, and CorruptMessageError for one that is no single, whole frame.
    """
    check_declared_size(payload, codec, size_max_bytes=size_max_bytes)
    if codec != Codec.CODEC_ZSTD:
        return payload
    decompressor = _zstd().ZstdDecompressor(options=_options(size_max_bytes))
    plain: bytes = decompressor.decompress(payload, size_max_bytes + 1)
    if len(plain) > size_max_bytes:
        raise MessageTooLargeError(
            f"payload is over {size_max_bytes} bytes when decompressed",
            size_max_bytes=size_max_bytes,
        )
    if not decompressor.eof:
        raise CorruptMessageError("payload ends within its zstd frame")
    if decompressor.unused_data:
        raise CorruptMessageError(
            f"payload has {len(decompressor.unused_data)} bytes behind its zstd frame"
        )
    return plain


def _options(size_max_bytes: int) -> dict[int, int]:
    """Return options that refuse a frame whose window exceeds the size that it may open to."""
    window_log = max(_WINDOW_LOG_MIN, (size_max_bytes - 1).bit_length())
    return {_zstd().DecompressionParameter.window_log_max: min(window_log, 31)}


def _zstd() -> ModuleType:
    if zstd is None:
        raise InvalidConfigError(
            "compression zstd needs the package backports.zstd: install aiosemel[zstd]"
        )
    return zstd
