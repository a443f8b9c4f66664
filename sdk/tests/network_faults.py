"""What a test lets happen to a request on its way, in place of the ordinary."""

import asyncio
from dataclasses import dataclass

from aiosemel.errors import SemelError


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error; nothing happens."""

    error: SemelError


@dataclass(frozen=True, slots=True)
class RefusePartition:
    """Answer every partition of a Produce with an error; nothing is stored."""

    error: SemelError


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Let it never arrive."""


@dataclass(frozen=True, slots=True)
class LoseReply:
    """Let it take effect, and its answer never arrive."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Let it wait on the way until the test says so."""

    released: asyncio.Event


@dataclass(frozen=True, slots=True)
class HoldReply:
    """Let it take effect, and its answer wait until the test says so."""

    released: asyncio.Event


Fault = Refuse | RefusePartition | LoseRequest | LoseReply | Hold | HoldReply | None
