"""What `semel transactions` shows of joint transactions."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from command_line import CommandLine

from aiosemel import SemelClient


def test_joint_transactions_are_shown_with_their_writers(
    semel: CommandLine, topic: str, bootstrap: str
) -> None:
    is_open, may_commit = Event(), Event()

    async def write() -> None:
        async with SemelClient(bootstrap) as client:
            joint = client.joint_transaction(topic, 5, owner="query", run="one")
            async with joint, client.join(joint.handle, name="task") as writer:
                await writer.send_and_wait(topic, b"x", partition=0)
                is_open.set()
                await asyncio.to_thread(may_commit.wait)
                await joint.commit([await writer.finish()], wait_until_visible=True)

    # Commands run in this thread, which is where signals arrive; so the writer has another one.
    with ThreadPoolExecutor() as others:
        writing = others.submit(lambda: asyncio.run(write()))
        try:
            assert is_open.wait(30)
            _look_while_open(semel, topic)
        finally:
            may_commit.set()
        writing.result()
    described = semel("transactions", "describe", topic, "--format", "json").json
    assert described["joint"]["committed_version"] == 5
    assert described["joint"]["open_version"] is None
    assert described["transactions"] == []
    lines = semel("transactions", "describe", topic).lines
    assert "Owner\tquery" in lines
    assert "Committed version\t5" in lines


def _look_while_open(semel: CommandLine, topic: str) -> None:
    described = semel("transactions", "describe", topic, "--format", "json").json
    assert described["joint"]["open_version"] == 5
    (writer,) = described["joint"]["writers"]
    assert writer["writer"].startswith("task-")
    (transaction,) = described["transactions"]
    assert transaction["producer_id"] == writer["producer_id"]
    assert any(line.startswith("task-") for line in semel("transactions", "describe", topic).lines)
    options = ("--id-pattern", topic, "--state", "ongoing")
    (listed,) = semel("transactions", "list", *options, "--format", "json").json
    assert listed["joint_writers"] == 1
    (line,) = semel("transactions", "list", *options).lines[1:]
    assert line.split("\t")[:4] == [topic, "-", "-", "Ongoing"]
