"""Every test here runs in virtual time: waiting costs nothing, and waiting for ever is an error."""

import asyncio
from collections.abc import Callable, Mapping

from semel_runtime.testing.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual-time": VirtualTimeLoop}
