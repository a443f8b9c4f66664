"""Every test here runs in virtual time: waiting costs nothing, and waiting for ever is an error."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from semel_runtime.testing.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's
    item: pytest.Item,  # noqa: ARG001 - the hook's
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual-time": VirtualTimeLoop}
