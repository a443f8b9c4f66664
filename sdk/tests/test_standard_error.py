"""Nothing that gRPC writes by itself is on the terminal of a program that uses the SDK."""

import os
import subprocess
import sys

PROGRAM = """
import asyncio, os
from aiosemel import ClientOptions, Security, SemelClient
from aiosemel.errors import SslAuthenticationError

async def speak_no_tls(reader, writer):
    writer.write(b"no TLS" * 10)

async def main():
    server = await asyncio.start_server(speak_no_tls, "127.0.0.1", 0)
    address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    async with SemelClient(address, security=Security()) as client:
        try:
            await client.admin().list_topics()
        except SslAuthenticationError as error:
            print(error)

asyncio.run(main())
print(os.environ.get("GRPC_VERBOSITY"))
"""


def test_handshakes_that_fail_write_no_lines_of_grpc() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    ran = subprocess.run(
        (sys.executable, "-c", PROGRAM), capture_output=True, text=True, check=True, env=environment
    )
    sentence, left = ran.stdout.splitlines()
    assert "does not speak TLS" in sentence
    assert left == "None"  # Processes that it starts decide for themselves.
    lines = [line for line in ran.stderr.splitlines() if ".cc:" in line]
    assert lines == []
