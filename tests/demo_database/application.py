"""An application as users write it: orders in, a line of the ledger and a receipt out.

``python -m demo_database.application BOOTSTRAP INSTANCE``, with the database's URL in LEDGER_URL.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal

import asyncpg

from aiosemel import ConsumerRecord, Outputs, SemelClient, TransformOptions
from aiosemel.database.asyncpg import AsyncpgDatabase, Connection

ORDERS, RECEIPTS, GROUP = "orders", "receipts", "ledger"
URL = "LEDGER_URL"
LEDGER = "CREATE TABLE ledger (line BIGINT NOT NULL, price NUMERIC NOT NULL)"
"""Without a key: a line that were booked twice would be there twice."""


async def sell(orders: Sequence[ConsumerRecord], session: Connection, outputs: Outputs) -> None:
    """Book some order lines, and send their receipts."""
    for order in orders:
        sold = json.loads(order.value or b"")
        line, price = sold["line"], sold["price"]
        await session.execute("INSERT INTO ledger VALUES ($1, $2)", line, Decimal(price))
        receipt = json.dumps({"line": line, "price": price}).encode()
        await outputs.send(RECEIPTS, receipt, key=order.key)


async def main(bootstrap: str, instance: str) -> None:
    """Work until stopped."""
    async with (
        asyncpg.create_pool(os.environ[URL], min_size=0, max_size=4) as pool,
        SemelClient(bootstrap) as client,
    ):
        await client.with_database(AsyncpgDatabase(pool)).transform(
            source=[ORDERS],
            group=GROUP,
            transactional_id=instance,
            handler=sell,
            options=TransformOptions(max_records=100),
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
