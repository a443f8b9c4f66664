"""A child process that appends to a journal until it is killed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

HARNESS = Path(__file__).parent
APPENDER = HARNESS / "journal" / "sqlite_appender.py"


async def start_appender(folder: Path, *, wal_bytes: int = 1 << 24) -> asyncio.subprocess.Process:
    """Start a child that appends until it is killed."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(APPENDER),
        str(folder),
        str(wal_bytes),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(HARNESS)},
    )


async def kill_after(appender: asyncio.subprocess.Process, count: int) -> int:
    """Kill the child in the middle of appends; answer the last number it acknowledged."""
    assert appender.stdout is not None
    for _ in range(count):
        await appender.stdout.readline()
    appender.send_signal(signal.SIGKILL)
    rest, _ = await appender.communicate()
    return int(rest.split()[-1]) if rest else count - 1
