"""A program around `transform` is asked to end: real processes, real signals."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from aiosemel import SemelClient, TopicPartition
from semel_local import LocalCluster
from semel_runtime.testing.default_signals import default_signals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="session"),
]

# Copies the topic sys.argv[2] to sys.argv[3], and prints its steps; a value "wait" keeps its
# handler until a line comes from standard input.
PROGRAM = """
import asyncio, logging, sys
from aiosemel import SemelClient, TransformOptions

bootstrap, source, target, name, options = sys.argv[1:]

async def copy(records, outputs):
    for record in records:
        if record.value == b"wait":
            print("waiting", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        await outputs.send(target, record.value)

async def tell(event):
    print(type(event).__name__, flush=True)

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("aiosemel._transform.stop_on_signal").setLevel(logging.INFO)

async def main():
    async with SemelClient(bootstrap) as client:
        await client.transform(
            source=[source], group=name, transactional_id=name, handler=copy, on_event=tell,
            **eval(options, {"TransformOptions": TransformOptions}),
        )
    print("returned", flush=True)
"""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOPS = {
    "asyncio": "asyncio.run(main())",
    "uvloop": "import uvloop; uvloop.run(main())",
}


class Program:
    """A running program."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def tells(self, text: str) -> None:
        """Read until it has told this."""
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()) != f"{text}\n".encode():
            assert line, f"it ended without telling {text!r}"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ends(self) -> tuple[int | None, str, str]:
        """Wait for its end; returns the status, and the rest of its output and errors."""
        async with asyncio.timeout(30):
            told, complained = await self.process.communicate()
        return self.process.returncode, told.decode(), complained.decode()


class Copying:
    """Programs that copy one topic to another."""

    def __init__(self, cluster: LocalCluster, client: SemelClient, source: str, name: str) -> None:
        self._bootstrap = cluster.bootstrap
        self._client = client
        self.source, self.target, self.name = source, f"{source}-copy", name

    async def send(self, value: bytes) -> None:
        """Give the program something to copy."""
        await self._client.producer().send_and_wait(self.source, value, partition=0)

    async def copied(self) -> int:
        """Return how many records are consumed: what they became is visible."""
        place = TopicPartition(self.source, 0)
        found = await self._client.admin().list_consumer_group_offsets(self.name, [place])
        at = found[place]
        return 0 if at is None else at.offset

    @asynccontextmanager
    async def program(
        self, options: str = "{}", *, loop: str = "asyncio", bootstrap: str = ""
    ) -> AsyncIterator[Program]:
        """Run one; killed at the end if it still runs."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", f"{PROGRAM}{LOOPS[loop]}"),
            *(bootstrap or self._bootstrap, self.source, self.target, self.name, options),
            stdin=PIPE, stdout=PIPE, stderr=PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        try:
            yield Program(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    with default_signals():
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def copying(cluster: LocalCluster, client: SemelClient, topic: str, name: str) -> Copying:
    await client.admin().create_topic(f"{topic}-copy", partitions=1)
    return Copying(cluster, client, topic, name)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("number", STOPPING)
async def test_a_program_that_waits_for_records_ends_without_a_word(
    copying: Copying, number: signal.Signals, loop: str
) -> None:
    await copying.send(b"one")
    async with copying.program(loop=loop) as program:
        await program.tells("TransactionCommitted")
        program.signal(number)
        assert await program.ends() == (0, f"{number.name}: ending\nreturned\n", "")


async def test_the_transaction_in_hand_is_finished_first(copying: Copying) -> None:
    await copying.send(b"wait")
    async with copying.program() as program:
        await program.tells("waiting")
        program.signal(signal.SIGTERM)
        await program.tells("SIGTERM: ending")
        assert program.process.stdin is not None
        program.process.stdin.write(b"go on\n")
        assert await program.ends() == (0, "TransactionCommitted\nreturned\n", "")
    assert await copying.copied() == 1


async def test_a_transaction_that_takes_too_long_is_aborted(copying: Copying) -> None:
    await copying.send(b"wait")
    options = "{'options': TransformOptions(signal_grace_ms=1)}"
    async with copying.program(options) as program:
        await program.tells("waiting")
        program.signal(signal.SIGTERM)
        await program.tells("returned")
    assert await copying.copied() == 0


async def test_a_second_signal_does_what_it_always_did(copying: Copying) -> None:
    await copying.send(b"wait")
    async with copying.program() as program:
        await program.tells("waiting")
        program.signal(signal.SIGINT)
        await program.tells("SIGINT: ending")
        program.signal(signal.SIGTERM)
        assert await program.process.wait() == -signal.SIGTERM


async def test_a_program_can_keep_its_signals(copying: Copying) -> None:
    await copying.send(b"one")
    async with copying.program("{'handle_signals': False}") as program:
        await program.tells("TransactionCommitted")
        program.signal(signal.SIGTERM)
        assert await program.process.wait() == -signal.SIGTERM


async def test_a_program_whose_cluster_does_not_answer_ends_at_once(copying: Copying) -> None:
    asked = asyncio.Event()

    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with copying.program(bootstrap=f"{host}:{port}") as program:
            await asked.wait()
            program.signal(signal.SIGINT)
            status, told, _ = await program.ends()
    assert (status, told) == (0, "SIGINT: ending\nreturned\n")


async def test_a_program_that_nohup_has_started_outlives_its_terminal(copying: Copying) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await copying.send(b"one")
    async with copying.program() as program:
        await program.tells("TransactionCommitted")
        program.signal(signal.SIGHUP)
        await copying.send(b"two")
        await program.tells("TransactionCommitted")
        program.signal(signal.SIGTERM)
        assert await program.ends() == (0, "SIGTERM: ending\nreturned\n", "")
