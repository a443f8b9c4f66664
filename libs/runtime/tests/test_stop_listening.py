"""A server of tests that stops while a client connects leaves no connection to be collected."""

import asyncio
import gc
import socket
from contextlib import closing

import pytest

from semel_runtime.testing.stop_listening import stop_listening


@pytest.mark.usefixtures("only_own_garbage")
@pytest.mark.parametrize("turns", range(5))
async def test_connection_is_accepted_or_refused_at_each_turn_of_the_loop(turns: int) -> None:
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    with closing(socket.create_connection(server.sockets[0].getsockname())):
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_listening(server)
        for _ in range(5):
            await asyncio.sleep(0)
        assert bool(accepted) is (turns > 1)
        for writer in accepted:
            writer.transport.abort()
        await asyncio.sleep(0)
    gc.collect()
