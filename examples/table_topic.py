"""A compacted topic as a table: each key has the value that was written last.

    semel up                                             # in another terminal
    semel topics create prices --config cleanup.policy=compact
    python examples/table_topic.py set margherita 8.50
    python examples/table_topic.py delete quattro
    python examples/table_topic.py show                  # the whole table
    python examples/table_topic.py follow                # the table, then each change

A change is a record with a key, a deletion a record without a value. The broker removes the records
that a later one replaces, so a reader that starts late still knows every key, and reads little more
than the table. Readers keep the table in memory: there is no query, and no second system.
"""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator

from aiosemel import Consumer, ConsumerOptions, OffsetReset, SemelClient, TopicPartition

TABLE = "prices"


async def write(client: SemelClient, key: str, value: str | None) -> None:
    """Set a key, or delete it; stored when this returns."""
    async with client.producer() as producer:
        encoded = None if value is None else value.encode()
        await producer.send_and_wait(TABLE, encoded, key=key.encode())


async def read(consumer: Consumer) -> dict[str, str]:
    """Return the table as it is now: every partition up to its present end."""
    ends = await consumer.end_offsets(consumer.assignment())
    table: dict[str, str] = {}
    while any(consumer.positions().get(each, 0) < end for each, end in ends.items()):
        for records in (await consumer.poll()).values():
            for record in records:
                change(table, record.key, record.value)
    return table


async def changes(consumer: Consumer) -> AsyncIterator[tuple[str, str | None]]:
    """Yield each later change."""
    async for record in consumer:
        yield (record.key or b"").decode(), None if record.value is None else record.value.decode()


def change(table: dict[str, str], key: bytes | None, value: bytes | None) -> None:
    """Change the table as a record says."""
    name = (key or b"").decode()
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value.decode()


async def show(client: SemelClient, *, follow: bool) -> None:
    """Print the table; then, to follow it, print each change."""
    topic = await client.admin().describe_topic(TABLE)
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(options=options) as consumer:
        consumer.assign([TopicPartition(TABLE, each.partition) for each in topic.partitions])
        for name, value in sorted((await read(consumer)).items()):
            print(f"{name} {value}", flush=True)
        if follow:
            print("following", flush=True)
            async for name, changed in changes(consumer):
                print(f"{name} is deleted" if changed is None else f"{name} {changed}", flush=True)


async def run(options: argparse.Namespace) -> None:
    """Do what the command line says; a signal ends it in order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    async with SemelClient(options.bootstrap) as client:
        match options.command:
            case "set":
                await write(client, options.key, options.value)
            case "delete":
                await write(client, options.key, None)
            case command:
                await show(client, follow=command == "follow")


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    commands = parser.add_subparsers(dest="command", required=True)
    setting = commands.add_parser("set", help="set a key to a value")
    setting.add_argument("key")
    setting.add_argument("value")
    commands.add_parser("delete", help="delete a key").add_argument("key")
    commands.add_parser("show", help="print the table")
    commands.add_parser("follow", help="print the table, then each change")
    try:
        asyncio.run(run(parser.parse_args()))
    except asyncio.CancelledError:
        print("ended")


if __name__ == "__main__":
    main()
