"""`python -m web_console.console_shots FOLDER`: pictures of the console's pages, light and dark."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.async_api import Browser, Page
from web_console.console_browser import (
    LEFT_OUT,
    Stand,
    browser_of,
    console_at_an_address,
    find_chromium,
)

from aiosemel import ConsumerOptions, OffsetReset, ProducerOptions
from semel_local import LocalCluster

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, HEIGHT_MAX = 1_080, 760
COLORS = 64
"""Of a picture: pages have few, and a palette is a third of the bytes."""
BYTES_MAX = 1_000_000
"""Of all pictures together."""
SHOTS = {
    "home": "",
    "transactions": "transactions",
    "transaction": "transaction?transactional_id=billing-1&epoch=0",
    "history": "history",
    "partition": "partition?topic=orders&partition=0",
    "records": "messages?topic=orders&partition=0&isolation=read_uncommitted",
    "group": "group?id=reports",
    "why": "why?group=reports&topic=orders",
    "audit": "audit",
}
"""The pages by the names of their pictures."""
_EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


async def take(folder: Path) -> None:
    """Write the pictures; raises SystemExit without a browser."""
    program = find_chromium()
    if program is None:
        raise SystemExit(LEFT_OUT)
    async with browser_of(program) as browser, stand_to_show(browser) as stand:
        for scheme in SCHEMES:
            async with stand.person(width=WIDTH, scheme=scheme) as person:
                for name, path in SHOTS.items():
                    await person.page.goto(f"{stand.url}{path}")
                    await _shoot(person.page, folder / f"{name}-{scheme}.png")


async def _shoot(page: Page, path: Path) -> None:
    height = await page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
    await page.set_viewport_size({"width": WIDTH, "height": min(int(height), HEIGHT_MAX)})
    await page.screenshot(path=path, animations="disabled")
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


@asynccontextmanager
async def stand_to_show(browser: Browser) -> AsyncIterator[Stand]:
    """Run a cluster in which something is open, prepared, aborted, behind, and ended by hand."""
    async with (
        LocalCluster(brokers=2) as cluster,
        cluster.client() as client,
        console_at_an_address(cluster) as url,
    ):
        stand = Stand(cluster, client, url, browser)
        await _fill(stand)
        yield stand


async def _fill(stand: Stand) -> None:
    client = stand.client
    for topic in ("orders", "bills"):
        await client.admin().create_topic(topic, partitions=2)
    for number in range(6):
        value = b'{"order": %d, "pizza": "margherita"}' % number
        await client.producer().send_and_wait("orders", value, key=b"%d" % number, partition=0)
    consumer = client.consumer("reports", _EARLIEST)
    consumer.subscribe(["orders"])
    while not await consumer.poll(timeout_ms=1_000):
        pass
    await consumer.commit()
    for number in range(4):
        producer = client.transactional_producer(
            f"billing-{number}", ProducerOptions(registration_delay_ms=0)
        )
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("bills", b"bill", partition=number % 2)
        await producer.send_and_wait("orders", b'{"bill": %d}' % number, partition=0)
        await (producer.abort() if number == 2 else producer.commit())
    await stand.open_transaction("nightly", "orders", value=b'{"order": "not yet"}')
    await client.producer().send_and_wait("orders", b'{"order": "behind"}', partition=0)
    prepared = await stand.open_transaction("payments", "bills", partition=1)
    await prepared.prepare()
    await stand.open_transaction("import", "bills")
    await asyncio.sleep(1)  # Registrations and markers wait for no answer.
    described = await client.admin().describe_transactions("import")
    await client.admin().operators.abort_transaction(
        "import", described.producer_id, 0, operator="ada", reason="its host is lost"
    )
    for _ in range(4):  # It takes its id from itself.
        await stand.open_transaction("worker", "bills")


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(folder))
    size = sum(path.stat().st_size for path in folder.glob("*.png"))
    if size > BYTES_MAX:
        raise SystemExit(f"the pictures in {folder} have {size:,} bytes, more than {BYTES_MAX:,}")


if __name__ == "__main__":
    main()
