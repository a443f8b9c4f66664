"""The client of `tracing-instructions`: a turn of transactions for each line that it reads.

Run as ``python -m bench.tracing.client BOOTSTRAP``; prints a line when it is ready, and after each
turn how many of its transactions were recorded. What it traces is in its environment. Its times
suit a machine that is 40 times as slow.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import uvloop
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from aiosemel import ProducerOptions, SemelClient
from aiosemel.tracing import open_telemetry
from bench.turns import Pace, producing

PACE = Pace(each=90, pause_max_s=0.5, options=ProducerOptions(registration_delay_ms=60_000))
"""A turn takes about two minutes."""


class _Recorded(SpanProcessor):
    """Counts transactions that are recorded."""

    def __init__(self) -> None:
        self.count = 0

    def on_end(self, span: ReadableSpan) -> None:
        if span.parent is None:
            self.count += 1


async def main(bootstrap: str) -> None:
    """Take turns until standard input ends."""
    recorded = _Recorded()
    async with AsyncExitStack() as stack:
        telemetry = open_telemetry(os.environ, "bench")
        if telemetry is not None:
            stack.push_async_callback(telemetry.aclose)
            assert isinstance(telemetry.provider, TracerProvider)
            telemetry.provider.add_span_processor(recorded)
        provider = None if telemetry is None else telemetry.provider
        client = await stack.enter_async_context(SemelClient(bootstrap, tracer_provider=provider))
        contender = await stack.enter_async_context(producing("client", client, (), PACE))
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            before = recorded.count
            await contender.turn()
            print(recorded.count - before, flush=True)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
