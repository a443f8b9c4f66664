"""The wheels: aiosemel's works by itself, with its own dependencies and nothing else."""

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, OffsetReset
from semel_local import LocalCluster

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ("semel-protos", "semel-common", "aiosemel")

PROGRAM = textwrap.dedent(
    """
    import asyncio, sys
    from aiosemel import SemelClient

    async def main() -> None:
        async with SemelClient(sys.argv[1]) as client:
            producer = client.transactional_producer("from-a-wheel")
            await producer.init_transactions()
            async with producer.transaction(wait_until_visible=True):
                await producer.send("parcels", b"delivered")

    asyncio.run(main())
    """
)


def run(*arguments: str | Path) -> str:
    """Run a program of the environment; a failure shows what it said."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [str(each) for each in arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_sdks_wheel_runs_a_transaction_in_an_empty_environment(tmp_path: Path) -> None:
    dist, python = tmp_path / "dist", tmp_path / "venv" / "bin" / "python"
    for package in PACKAGES:
        run(BIN / "uv", "build", "--quiet", "--wheel", "--package", package, "--out-dir", dist)
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    wheels = sorted(dist.glob("*.whl"))
    run(BIN / "uv", "pip", "install", "--quiet", "--python", python, *wheels)
    installed = run(BIN / "uv", "pip", "list", "--quiet", "--python", python)
    assert "aiosqlite" not in installed
    assert "pydantic" not in installed
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with LocalCluster() as cluster, cluster.client() as client:
        await client.admin().create_topic("parcels", partitions=1)
        await asyncio.to_thread(run, python, "-c", PROGRAM, cluster.bootstrap)
        async with client.consumer(options=options) as consumer:
            consumer.assign([("parcels", 0)])
            polled = await consumer.poll(timeout_ms=10_000)
    assert [record.value for records in polled.values() for record in records] == [b"delivered"]
