"""The greedy client of the workload `quotas`: asks as fast as it can, and never waits as told.

Run as ``python -m bench.quotas_greedy TOPIC BROKER CA TOKEN``; prints a line when it runs, and its
throughput with the seconds since when it is told to end, by the end of its input.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Record
from semel_common.errors import SemelError, ThrottlingQuotaExceededError
from semel_common.wire import methods
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnector

IN_FLIGHT = 8
VALUE = bytes(64 << 10)
_PAUSE_S = 0.1
"""After a refusal: the usual back-off, far less than it is told to wait."""


async def main(topic: str, address: str, ca: str, token: str) -> None:
    """Send until standard input ends."""
    connector = GrpcConnector(security=Security(ssl_ca_location=Path(ca), token=token))
    connection = connector.connect(address)
    records = broker.PlainRecords(records=[Record(value=VALUE)])
    request = broker.ProduceRequest(
        partitions=[broker.ProducePartition(topic=topic, records=records)]
    )
    counts = {"taken": 0, "refused": 0, "failed": 0}
    await connection.call(methods.PRODUCE, request, timeout_ms=10_000)
    print("ready", flush=True)
    started = time.perf_counter()

    async def send() -> None:
        while True:
            try:
                answer = await connection.call(methods.PRODUCE, request, timeout_ms=10_000)
                failed = answer.partitions[0].HasField("error")
                counts["failed" if failed else "taken"] += 1
            except ThrottlingQuotaExceededError:
                counts["refused"] += 1
                await asyncio.sleep(_PAUSE_S)
            except SemelError:
                counts["failed"] += 1
                await asyncio.sleep(_PAUSE_S)

    async with asyncio.TaskGroup() as group:
        senders = [group.create_task(send()) for _ in range(IN_FLIGHT)]
        await asyncio.to_thread(sys.stdin.read)
        for sender in senders:
            sender.cancel()
    seconds = time.perf_counter() - started
    await connector.close()
    print(json.dumps(counts | {"seconds": seconds}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
