"""Tests of the sink that await run in virtual time: waiting costs nothing."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from semel_runtime.testing.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's
    item: pytest.Item,  # noqa: ARG001 - the hook's
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual-time": VirtualTimeLoop}
