"""The example of a stream, as a process of its own: exact, and stopped by a signal."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cluster import Cluster

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "spark_stream.py"


@contextmanager
def streaming(semel: Cluster, checkpoint: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the example; none of its processes outlives the block."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(checkpoint), "--bootstrap", semel.bootstrap],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def visible(semel: Cluster, count: int) -> None:
    """Wait until so many records of income are visible."""
    async with semel.client.consumer() as consumer:
        consumer.assign([("income", 0)])
        consumer.seek_to_beginning()
        async for _ in consumer:
            count -= 1
            if not count:
                return


@pytest.mark.slow
def test_a_stream_writes_each_order_once_and_ends_in_order(semel: Cluster, tmp_path: Path) -> None:
    for topic in ("orders", "income"):
        semel.call(semel.client.admin().create_topic(topic, partitions=1))
    orders = [{"customer": f"customer-{number}", "cents": number} for number in range(200)]
    lines: list[bytes | None] = [json.dumps(order).encode() for order in orders]
    with streaming(semel, tmp_path / "checkpoint") as stream:
        semel.send("orders", [*lines[:100], b"no JSON"])
        semel.call(visible(semel, 100))
        semel.send("orders", lines[100:])
        semel.call(visible(semel, 200))
        stream.send_signal(signal.SIGTERM)
        assert stream.wait() == 0
    income = sorted(int(value or b"") for value in semel.values("income"))
    assert income == list(range(200))
