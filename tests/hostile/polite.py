"""``python -m hostile.polite``: a client that goes on while others attack, in a process of its own.

Each turn is one transaction over two partitions, visible when it returns, a read of its records,
and a question to each service. It prints a line of JSON at its end (its standard input is closed):
the times of the turns, and the errors that the SDK raised.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Self

from aiosemel import (
    Consumer,
    ConsumerOptions,
    OffsetReset,
    Security,
    SemelClient,
    SemelError,
    TransactionalProducer,
)
from hostile.callers import Caller
from hostile.stage import POLITE_TOPIC, Stage

TURN_PAUSE_S = 0.05
TURN_MAX_S = 20.0
GROUP = f"{Caller.POLITE}-group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """How the polite client fared."""

    turns: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: tuple[str, ...]

    @classmethod
    def of(cls, turns_ms: list[float], errors: list[str]) -> Self:
        """Sum up."""
        if len(turns_ms) < 2:
            only = max(turns_ms, default=0.0)
            return cls(
                turns=len(turns_ms), p50_ms=only, p99_ms=only, max_ms=only, errors=tuple(errors)
            )
        cuts = quantiles(turns_ms, n=100, method="inclusive")
        return cls(
            turns=len(turns_ms),
            p50_ms=cuts[49],
            p99_ms=cuts[98],
            max_ms=max(turns_ms),
            errors=tuple(errors),
        )

    def as_json(self) -> str:
        """Return one line."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, line: Mapping[str, object]) -> Self:
        """Read it."""
        return cls(**{**line, "errors": tuple(line["errors"])})  # type: ignore[arg-type]  # our own


class PoliteProcess:
    """The process, as its parent sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def end(self) -> Politeness:
        """Let it end its turn, and return how it fared."""
        output, _ = await self._process.communicate(b"")  # Closes its input.
        return Politeness.from_json(json.loads(output.decode().splitlines()[-1]))


@asynccontextmanager
async def polite_client(stage: Stage) -> AsyncIterator[PoliteProcess]:
    """Start the client; returns when it has done its first turn."""
    token = stage.folder / "polite-token"
    token.touch(mode=0o600)
    token.write_text(stage.issuer.token(Caller.POLITE))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hostile.polite"),
        *("--bootstrap", stage.bootstrap, "--ca", str(stage.issuer.ca), "--token", str(token)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    try:
        assert process.stdout is not None
        first = await process.stdout.readline()
        assert first == b"ready\n", f"the polite client could not begin: {first!r}"
        yield PoliteProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _run(client: SemelClient, ended: asyncio.Event) -> Politeness:
    producer = client.transactional_producer(Caller.POLITE.value)
    await producer.init_transactions()
    consumer = client.consumer(GROUP, ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST))
    consumer.assign([(POLITE_TOPIC, 0), (POLITE_TOPIC, 1)])
    turns_ms: list[float] = []
    errors: list[str] = []
    await _turn(client, producer, consumer)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not ended.is_set():
        began = time.perf_counter()
        try:
            async with asyncio.timeout(TURN_MAX_S):
                await _turn(client, producer, consumer)
        except SemelError as error:
            errors.append(f"{type(error).__name__}: {error}")
        except TimeoutError:
            errors.append(f"a turn took more than {TURN_MAX_S:g} s")
        turns_ms.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(TURN_PAUSE_S)
    return Politeness.of(turns_ms, errors)


async def _turn(client: SemelClient, producer: TransactionalProducer, consumer: Consumer) -> None:
    value = b"%d" % time.monotonic_ns()
    async with producer.transaction(wait_until_visible=True):
        for partition in (0, 1):
            await producer.send(POLITE_TOPIC, value, partition=partition)
    wanted = {0, 1}
    while wanted:
        for (_, partition), records in (await consumer.poll(timeout_ms=5_000)).items():
            if any(record.value == value for record in records):
                wanted.discard(partition)
    await client.admin().list_consumer_group_offsets(GROUP)


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="hostile.polite", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="address of coordinator 0")
    parser.add_argument("--ca", type=Path, required=True, help="certificate of the CA")
    parser.add_argument("--token", type=Path, required=True, help="file with the token")
    options = parser.parse_args()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    watch = loop.run_in_executor(None, sys.stdin.read)
    watch.add_done_callback(lambda _: ended.set())
    security = Security(ssl_ca_location=options.ca, token=options.token)
    async with SemelClient(options.bootstrap, security=security) as client:
        politeness = await _run(client, ended)
    sys.stdout.write(politeness.as_json() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
