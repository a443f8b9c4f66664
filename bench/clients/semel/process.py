"""One run in a process that is told what to do."""

import uvloop

from aiosemel import SemelClient
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.semel.run import run_workload
from bench.workloads import Sample


def run(bootstrap: str, order: Order, meter: Meter) -> Sample:
    """Do one task with a client of its own."""
    return uvloop.run(_run(bootstrap, order, meter))


async def _run(bootstrap: str, order: Order, meter: Meter) -> Sample:
    async with SemelClient(bootstrap) as client:
        await run_workload(client, order, meter)
    return meter.sample()
