"""The wait of a caller until the markers of a decided transaction are written."""

import asyncio
from collections.abc import Callable, Mapping

from semel_common.errors import RequestTimedOutError
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call


async def wait_for_markers(
    parts: ServiceParts,
    is_complete: Callable[[], bool],
    producer_id: int,
    call: Call,
    facts: Mapping[str, str | int],
) -> None:
    """Wait until markers are written, as long as the caller does.

    Raises RequestTimedOutError with `facts`, the definite part of the answer; a repeat waits on.
    """
    if await parts.runner.run(lambda: Result(is_complete())):
        return
    longest_ms = parts.limits.completion_wait_ms
    timeout_ms = min(longest_ms, call.remaining_ms(longest_ms))
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                completion = parts.markers.completion_of(producer_id)
                if await parts.runner.run(lambda: Result(is_complete())):
                    return
                await completion.wait()
    except TimeoutError:
        raise RequestTimedOutError(
            f"decided, but not all markers of producer id {producer_id} were written in"
            f" {timeout_ms} ms",
            **facts,
        ) from None
