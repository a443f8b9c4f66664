"""The wheels: each that users install works by itself, with its dependencies and nothing else."""

import asyncio
import os
import subprocess
import sys
import textwrap
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from surroundings import proxies

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
    environment = {**os.environ, **proxies}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of `make dist`."""
    folder = tmp_path_factory.mktemp("dist")
    run(BIN / "uv", "build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder)
    next(folder.glob("semel_pipelines-*")).unlink()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The programs of an empty environment."""
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    return tmp_path / "venv" / "bin"


def install(environment: Path, *wheels: str | Path) -> str:
    """Install wheels; returns all that is installed then."""
    python = ("--python", environment / "python")
    run(BIN / "uv", "pip", "install", "--quiet", *python, *wheels)
    return run(BIN / "uv", "pip", "list", "--quiet", *python)


def wheels(dist: Path, *packages: str) -> list[Path]:
    """Return the files of packages."""
    return [next(dist.glob(f"{package.replace('-', '_')}-*.whl")) for package in packages]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_sdks_wheel_runs_a_transaction_in_an_empty_environment(
    dist: Path, environment: Path
) -> None:
    installed = install(environment, *wheels(dist, *PACKAGES))
    assert "aiosqlite" not in installed
    assert "pydantic" not in installed
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with LocalCluster() as cluster, cluster.client() as client:
        await client.admin().create_topic("parcels", partitions=1)
        await asyncio.to_thread(run, environment / "python", "-c", PROGRAM, cluster.bootstrap)
        async with client.consumer(options=options) as consumer:
            consumer.assign([("parcels", 0)])
            polled = await consumer.poll(timeout_ms=10_000)
    assert [record.value for records in polled.values() for record in records] == [b"delivered"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_wheel_of_the_command_runs_a_cluster_in_an_empty_environment(
    dist: Path, environment: Path, tmp_path: Path
) -> None:
    semel = environment / "semel"
    install(environment, *dist.glob("semel*.whl"), *dist.glob("aiosemel*.whl"))
    command = [str(semel), "up", "--data", str(tmp_path / "data"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        try:
            assert up.stderr is not None
            assert any("Ready after" in line for line in up.stderr)
            run(semel, "topics", "create", "parcels")
            assert run(semel, "topics", "list").splitlines()[1].startswith("parcels")
        finally:
            up.terminate()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_wheel_says_what_an_index_shows(dist: Path) -> None:
    for wheel in dist.glob("*.whl"):
        said = metadata_of(wheel)
        assert said["License-Expression"] == "Apache-2.0", wheel.name
        assert said.get_payload(), f"{wheel.name} has no description"
        assert "Programming Language :: Python :: 3.11" in said.get_all("Classifier", [])
        own = [each for each in said.get_all("Requires-Dist", []) if "semel" in each.split(";")[0]]
        assert [each for each in own if f"=={said['Version']}" not in each] == [], wheel.name


def metadata_of(wheel: Path) -> Message:
    """Return what a wheel says of itself."""
    with ZipFile(wheel) as files:
        names = files.namelist()
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names), wheel.name
        name = next(name for name in names if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(files.read(name))
