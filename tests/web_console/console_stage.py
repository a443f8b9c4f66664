"""A cluster in this process, its console, and what asks the console as a browser does."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx
from html_check import PageReader, read_page
from web_console.open_transactions import open_transaction

from aiosemel import SemelClient, TransactionalProducer
from semel_console.options import ConsoleOptions
from semel_console.web.app import make_app
from semel_local import LocalCluster

HTML_MAX_BYTES = 64 << 10
WAIT_MAX_S = 30.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with a console."""

    cluster: LocalCluster
    client: SemelClient
    browser: httpx.AsyncClient

    async def page(
        self,
        path: str,
        *,
        status: int = 200,
        parameters: Mapping[str, str | int] | None = None,
        **named: str | int,
    ) -> PageReader:
        """Return a page; every page is small, and has nothing in it that no template wrote."""
        answer = await self.browser.get(path, params={**(parameters or {}), **named} or None)
        assert answer.status_code == status, answer.text
        assert len(answer.content) <= HTML_MAX_BYTES
        read = read_page(answer.text)
        assert read.offences == []
        return read

    async def until(self, text: str, path: str, **named: str | int) -> PageReader:
        """Return a page as soon as it has some text: markers are written after the answer."""
        deadline = time.monotonic() + WAIT_MAX_S
        while True:
            page = await self.page(path, parameters=named)
            if text in page.text:
                return page
            assert time.monotonic() < deadline, page.text
            await asyncio.sleep(0.05)

    async def open_transaction(
        self, transactional_id: str, topic: str, *, value: bytes = b"open", partition: int = 0
    ) -> TransactionalProducer:
        """Return a producer whose transaction is open, and known to its coordinator."""
        return await open_transaction(
            self.client, transactional_id, topic, value=value, partition=partition
        )


@asynccontextmanager
async def console_stage(
    *,
    coordinators: int = 1,
    brokers: int = 1,
    group_coordinators: int = 1,
    options: ConsoleOptions | None = None,
) -> AsyncIterator[Stage]:
    """Start a cluster with a console."""
    layout = LocalCluster(
        coordinators=coordinators, brokers=brokers, group_coordinators=group_coordinators
    )
    async with layout as cluster, cluster.client() as client:
        given = options or ConsoleOptions(bootstrap=cluster.bootstrap)
        app = make_app(replace(given, bootstrap=cluster.bootstrap), lambda _: None)
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=transport,
                base_url="http://127.0.0.1",
                headers={"sec-fetch-site": "same-origin"},
            ) as browser,
        ):
            yield Stage(cluster, client, browser)
