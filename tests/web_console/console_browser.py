"""A real Chromium before a real console, for tests of the pages as a person sees them."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright
from web_console.open_transactions import open_transaction

from aiosemel import SemelClient, TransactionalProducer
from semel_console.options import ConsoleOptions, Listen
from semel_console.serving import listening, serve, url_of
from semel_local import LocalCluster

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
LEFT_OUT = (
    "the console's tests in a browser are left out: no Chromium is installed (apt-get install"
    " chromium); those over HTTP run"
)
CLICK_MS = 10_000
"""The next thing to click is there within this time, also where a service is away."""
NEWS_MS = 10_000
"""An open page shows what is new within this time."""
ANSWER_MS = 2_000
"""A question is answered within this time, as long as the machine does nothing else."""
CLICKS_MAX = 3
_SERIOUS = {"serious", "critical"}


def find_chromium() -> str | None:
    """Return the browser of this machine; None: it has none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@dataclass(slots=True)
class Person:
    """A person with one tab, who starts at the home page and counts clicks."""

    page: Page
    url: str
    clicks: int = 0

    async def start(self) -> None:
        """Go to the home page."""
        await self.page.goto(self.url)

    async def click(self, name: str) -> None:
        """Click the link or button of a name."""
        self.clicks += 1
        assert self.clicks <= CLICKS_MAX, f"{name} is click {self.clicks}"
        found = self.page.get_by_role("link", name=name, exact=True).or_(
            self.page.get_by_role("button", name=name, exact=True)
        )
        await found.first.click(timeout=CLICK_MS)

    async def search(self, text: str) -> None:
        """Search from the keyboard."""
        await self.page.keyboard.press("/")
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Enter")

    async def sees(self, text: str, *, within_ms: int = ANSWER_MS) -> None:
        """Wait until a text is visible."""
        await self.page.get_by_text(text).first.wait_for(state="visible", timeout=within_ms)

    async def text(self) -> str:
        """Return everything that the page shows."""
        return await self.page.locator("main").inner_text()


async def serious_findings(page: Page) -> list[str]:
    """Return the rules of accessibility that a page breaks seriously."""
    found = await Axe().run(page)
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in found.response["violations"]
        if each["impact"] in _SERIOUS
    ]


@dataclass(frozen=True, slots=True)
class Stand:
    """A cluster, its console at a real address, and a browser."""

    cluster: LocalCluster
    client: SemelClient
    url: str
    browser: Browser

    @asynccontextmanager
    async def person(
        self, *, width: int = 1200, scheme: Literal["light", "dark"] = "light"
    ) -> AsyncIterator[Person]:
        """Open a tab in which nothing may go wrong, and from which nothing may leave the host."""
        context = await self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        page = await context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(f"{error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(self.url) else wrong.append(asked.url),
        )
        person = Person(page, self.url)
        await person.start()
        yield person
        await context.close()
        assert wrong == []

    async def open_transaction(
        self, transactional_id: str, topic: str, *, value: bytes = b"open", partition: int = 0
    ) -> TransactionalProducer:
        """Return a producer whose transaction is open, and known to its coordinator."""
        return await open_transaction(
            self.client, transactional_id, topic, value=value, partition=partition
        )


@asynccontextmanager
async def browser_of(program: str) -> AsyncIterator[Browser]:
    """Start the browser, without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=Path(program), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def console_at_an_address(cluster: LocalCluster) -> AsyncIterator[str]:
    """Serve a console; yields its address."""
    options = ConsoleOptions(bootstrap=cluster.bootstrap, listen=Listen(port=0))
    listener = listening(options.listen)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(options, lambda _: None, listener))
        yield url_of(options, listener)
        serving.cancel()
