"""What ``async with`` closes at its end."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something that is closed when its ``async with`` ends, however it ends."""

    @abstractmethod
    async def close(self) -> None:
        """Stop. May be called twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
