"""``python -m untrusted.bombs ADDRESS CALL TOPIC_ID``: the memory of one call.

A process of its own, so that its peak is that of the call.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import NamedTuple

from aiosemel import ClientOptions, SemelClient, SemelError
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.grpc_connection import GrpcConnector
from untrusted.operations import OPERATIONS
from untrusted.world import World

ELEMENTS_MAX = 100_000
"""Fewer than by default, so that tests are quick."""
_KIB = 1 << 10


class Peak(NamedTuple):
    """The end of a call, and its peak of memory, without the memory in use before it."""

    error: str
    size_bytes: int


async def _call(address: str, name: str, topic_id: str) -> str:
    options = ClientOptions(request_timeout_ms=20_000, default_api_timeout_ms=30_000)
    connector = GrpcConnector(ChannelOptions(message_elements_max=ELEMENTS_MAX))
    try:
        async with SemelClient(address, options=options, connector=connector) as client:
            await OPERATIONS[name](World(client, topic_id, 1))
    except SemelError as error:
        return f"{type(error).__name__}: {error.message}"
    finally:
        await connector.close()
    return "returned"


def main() -> None:
    """Make the call, and print how it ended."""
    before = _peak_bytes()
    error = asyncio.run(_call(*sys.argv[1:]))
    sys.stdout.write(f"{_peak_bytes() - before} {error}\n")


def _peak_bytes() -> int:
    """Return the peak of this program: the one of getrusage includes the time before its exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIB
    raise AssertionError("no VmHWM")


async def peak_of(address: str, name: str, topic_id: str) -> Peak:
    """Run a call in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "untrusted.bombs",
        address,
        name,
        topic_id,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    size, _, error = output.decode().strip().partition(" ")
    return Peak(error, int(size))


if __name__ == "__main__":
    main()
