"""CRC-32C, of batches and of what else must be known again."""

import google_crc32c


def crc32c(first: bytes, *more: bytes) -> int:
    """Return the CRC-32C of one or more pieces, as if they were one."""
    crc: int = google_crc32c.value(first)
    for piece in more:
        crc = google_crc32c.extend(crc, piece)
    return crc
