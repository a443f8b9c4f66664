"""Requests at the metrics endpoint, which has no authentication: halves of them, and no readers."""

import asyncio
from pathlib import Path

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.stage import Stage

CONNECTIONS = 600
THREADS_MAX = 100
"""Threads of a service: its own ones and those of its pool are fewer than this."""
_HALF = b"GET /metrics HTTP/1.1\r\nHost: semel\r\n"
_WHOLE = _HALF + b"\r\n"
_NAME = "broker-0"


async def _open_all(stage: Stage, sent: Sent, begin: bytes) -> None:
    """Hold connections at which a request was begun, and ask as Prometheus does meanwhile."""
    host, port = stage.metrics_address(_NAME)
    writers = []
    for _ in range(CONNECTIONS):
        _, writer = await asyncio.open_connection(host, port, limit=1)
        writer.write(begin)
        writers.append(writer)
        sent.add("opened", len(begin))
    await _ask(stage, sent)
    threads = _threads(stage.cluster.pids()[_NAME])
    if threads > THREADS_MAX:
        sent.violations.append(f"{_NAME} has {threads} threads")
    for writer in writers:
        writer.transport.abort()


async def _ask(stage: Stage, sent: Sent) -> None:
    host, port = stage.metrics_address(_NAME)
    async with asyncio.timeout(60):
        while True:
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_WHOLE)
                if (await reader.read()).startswith(b"HTTP/1.1 200"):
                    return
            except ConnectionError:
                sent.add("closed")  # All places are taken by requests that are answered.
            finally:
                writer.close()


async def _half_requests(stage: Stage, sent: Sent) -> None:
    await _open_all(stage, sent, _HALF)


async def _unread_answers(stage: Stage, sent: Sent) -> None:
    await _open_all(stage, sent, _WHOLE)


def _threads(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())


ATTACKS = (
    Attack(
        name="half-requests-at-metrics",
        what="A client without a token sends halves of requests to the metrics endpoint.",
        rpc="GET /metrics",
        transport="HTTP",
        caller=Caller.NOBODY,
        run=_half_requests,
    ),
    Attack(
        name="unread-answers-of-metrics",
        what="A client without a token asks the metrics endpoint, and does not read the answers.",
        rpc="GET /metrics",
        transport="HTTP",
        caller=Caller.NOBODY,
        run=_unread_answers,
        quick=False,
    ),
)
