"""The same application without transactions: plain sends, and offsets committed afterwards.

This is how it is usually done. Killed between a send and the commit of its offset, it sends the
same income again when it comes back.
"""

import asyncio
import sys
from contextlib import suppress

from aiosemel import ConsumerOptions, OffsetReset, SemelClient
from aiosemel.errors import ApplicationRecoverableError
from semel_cli.demo.application import income_of
from semel_cli.demo.topics import PLAIN


async def main(bootstrap: str, _instance: str) -> None:
    """Work until killed."""
    async with SemelClient(bootstrap) as client:
        producer = client.producer()
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        async with client.consumer(PLAIN.group, options) as consumer:
            consumer.subscribe([PLAIN.orders])
            while True:
                polled = await consumer.poll(max_records=25)
                for order in (order for orders in polled.values() for order in orders):
                    income = income_of(order)
                    await producer.send(PLAIN.income, income.value, key=income.key)
                await producer.flush()
                # Another member may have these partitions by now: it will send the same again.
                with suppress(ApplicationRecoverableError):
                    await consumer.commit()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
