"""`semel consume --to-end` writes all that is there now, and nothing more."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from command_line import CommandLine

from aiosemel import SemelClient


@contextmanager
def open_transaction(bootstrap: str, topic: str) -> Iterator[None]:
    """Keep a transaction open with one record in partition 0, and abort it at the end."""
    is_open, is_over = Event(), Event()

    async def write() -> None:
        async with SemelClient(bootstrap) as client, client.transactional_producer(topic) as writer:
            await writer.init_transactions()
            await writer.begin_transaction()
            await writer.send_and_wait(topic, b"open", partition=0)
            is_open.set()
            await asyncio.to_thread(is_over.wait)
            await writer.abort()

    thread = Thread(target=lambda: asyncio.run(write()))
    thread.start()
    try:
        assert is_open.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


def test_consume_to_the_end_stops_before_an_open_transaction(
    semel: CommandLine, topic: str
) -> None:
    semel("produce", topic, "-p", "0", stdin="one\n")
    semel("produce", topic, "-p", "1", stdin="two\n")
    everything = ("consume", topic, "--from-beginning", "--to-end")
    with open_transaction(semel.environment["SEMEL_BOOTSTRAP"], topic):
        assert sorted(semel(*everything).lines) == ["one", "two"]
        with_open = semel(*everything, "--isolation", "read_uncommitted").lines
        assert sorted(with_open) == ["one", "open", "two"]
        assert len(semel(*everything, "--max-messages", "1").lines) == 1
    assert sorted(semel(*everything).lines) == ["one", "two"], "an abort marker is at the end"
    assert semel("consume", topic, "--to-end").lines == []
    assert "without --group" in semel("consume", topic, "--to-end", "-g", "g", status=2).err
