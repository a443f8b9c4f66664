"""The place of a batch in a log: how an error names a batch, and how a user names one to skip."""

import re
from typing import NamedTuple

from aiosemel._shared.name_checks import shown
from aiosemel.errors import InvalidConfigError

_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1
_TEXT = re.compile(r"([^:]+):(\d{1,10}):(\d{1,19})")


class BatchPlace(NamedTuple):
    """The first offset of a batch, in a partition."""

    topic: str
    partition: int
    offset: int

    @classmethod
    def named(cls, place: object) -> "BatchPlace":
        """Return the place (topic, partition, offset) of a caller; raises InvalidConfigError."""
        match place:
            case (str(topic), int(partition), int(offset)) if (
                0 <= partition <= _INT32_MAX and 0 <= offset <= _INT64_MAX
            ):
                return cls(topic, partition, offset)
            case _:
                raise InvalidConfigError(
                    f"a batch is named by (topic, partition, offset), not by {shown(place)}"
                )

    @classmethod
    def parse(cls, text: str) -> "BatchPlace":
        """Read ``TOPIC:PARTITION:OFFSET``; raises InvalidConfigError."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise InvalidConfigError(
                "a batch is named as TOPIC:PARTITION:OFFSET, such as orders:0:42, not"
                f" {shown(text)}"
            )
        return cls.named((found[1], int(found[2]), int(found[3])))

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"
