"""Pizza orders in, income out, exactly once: all that an application on Semel has to say."""

import asyncio
import json
import sys
from collections.abc import Sequence

from aiosemel import ConsumerRecord, Outputs, ProducerRecord, SemelClient, TransformOptions
from semel_cli.demo.topics import EXACTLY_ONCE


def income_of(record: ConsumerRecord) -> ProducerRecord:
    """Return the income of an order line."""
    sold = json.loads(record.value or b"")
    income = {name: sold[name] for name in ("line", "name", "type", "size", "date", "price")}
    return ProducerRecord(
        topic=EXACTLY_ONCE.income, key=sold["name"].encode(), value=json.dumps(income).encode()
    )


async def sell(orders: Sequence[ConsumerRecord], _outputs: Outputs) -> list[ProducerRecord]:
    """Make income of some order lines: one transaction, with the offsets of the orders."""
    return [income_of(order) for order in orders]


async def work(client: SemelClient, instance: str) -> None:
    """Work until stopped; a successor with the same instance name settles open transactions."""
    await client.transform(
        source=[EXACTLY_ONCE.orders],
        group=EXACTLY_ONCE.group,
        transactional_id=instance,
        handler=sell,
        options=TransformOptions(max_records=100),
    )


async def main(bootstrap: str, instance: str) -> None:
    """Work on a cluster without certificates."""
    async with SemelClient(bootstrap) as client:
        await work(client, instance)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
