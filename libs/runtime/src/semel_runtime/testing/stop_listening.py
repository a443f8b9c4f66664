"""The end of servers that tests make with ``asyncio.start_server``."""

import asyncio


async def stop_listening(*servers: asyncio.Server) -> None:
    """Close servers, and leave no connection open that a server was about to accept.

    In Python 3.11, a server that is closed in the midst of an accept leaves that connection to the
    collection of garbage.
    """
    loop = asyncio.get_running_loop()
    for server in servers:
        for listening in server.sockets:
            loop.remove_reader(listening)
    try:
        await asyncio.sleep(0)  # The accepts that have begun end now.
    finally:
        for server in servers:
            server.close()
