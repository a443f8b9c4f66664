"""A test that leaves a connection open fails itself, and not a later one."""

import asyncio

import pytest


async def _leave_a_connection_open() -> asyncio.StreamWriter:
    served = asyncio.Event()

    async def close_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(close_nothing, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await served.wait()
    server.close()
    return writer


def test_loop_with_an_open_connection_names_it_and_closes_it() -> None:
    runner = asyncio.Runner()
    writer = runner.run(_leave_a_connection_open())
    with pytest.raises(AssertionError, match="leaves connections open"):
        runner.close()
    assert writer.is_closing()
