"""Requests that no page of the console has made are refused, and every answer binds the browser."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from semel_console.web.security import ADDRESS_MAX_BYTES, HEADERS, Guard, host_name, refusal

HOSTS = {"127.0.0.1", "localhost", "::1", "console.example.com"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"host": "127.0.0.1:9080"}, None),
        ("GET", {"host": "LOCALHOST"}, None),
        ("GET", {"host": "[::1]:9080"}, None),
        ("GET", {"host": "console.example.com"}, None),
        ("GET", {"host": "attacker.example.net"}, 421),
        ("GET", {"host": "127.0.0.1.attacker.example.net"}, 421),
        ("GET", {}, 421),
        ("POST", {"host": "localhost", "sec-fetch-site": "same-origin"}, None),
        ("POST", {"host": "localhost", "sec-fetch-site": "same-site"}, 403),
        ("POST", {"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
        ("POST", {"host": "localhost", "sec-fetch-site": "none"}, 403),
        ("POST", {"host": "localhost"}, 403),
        ("DELETE", {"host": "localhost"}, 403),
        (
            "GET",
            {"host": "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
            None,
        ),
        (
            "GET",
            {"host": "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
            403,
        ),
        ("GET", {"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_only_pages_of_the_console_may_ask(
    method: str, headers: dict[str, str], status: int | None
) -> None:
    refused = refusal(method, Headers(headers), HOSTS)
    assert (refused and refused.status) == status


def test_a_request_that_names_no_host_is_not_told_to_give_an_empty_name() -> None:
    for headers in ({}, {"host": ""}, {"host": ":9080"}):
        refused = refusal("GET", Headers(headers), HOSTS)
        assert refused is not None
        assert "no Host header" in refused.sentence
        assert "--host" not in refused.sentence


async def test_an_address_that_would_fill_a_page_is_refused() -> None:
    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("text")

    guard = Middleware(Guard, hosts=HOSTS, has_tls=False)
    app = Starlette(routes=[Route("/", page)], middleware=[guard])
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
        assert (await browser.get(f"/?q={'x' * 10_000}")).status_code == 200
        for path in (f"/?q={'x' * ADDRESS_MAX_BYTES}", f"/{'x' * ADDRESS_MAX_BYTES}"):
            answer = await browser.get(path)
            assert answer.status_code == 414
            assert "more than 16,384" in answer.text
            assert len(answer.content) < 200


@pytest.mark.parametrize(
    ("host", "name"), [("a:1", "a"), ("[::1]", "::1"), ("[::1]:80", "::1"), ("A.b", "a.b")]
)
def test_a_host_is_known_without_its_port(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize("host", ["127.0.0.1", "attacker.example.net"])
@pytest.mark.parametrize("has_tls", [False, True])
async def test_every_answer_has_the_headers_that_bind_browsers(host: str, *, has_tls: bool) -> None:
    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("text")

    guard = Middleware(Guard, hosts=HOSTS, has_tls=has_tls)
    app = Starlette(routes=[Route("/", page)], middleware=[guard])
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as browser:
        for path in ("/", "/nothing"):
            answered = (await browser.get(path)).headers
            assert {name: answered[name] for name in HEADERS} == HEADERS
            assert answered["cache-control"] == "no-store"
            assert ("strict-transport-security" in answered) is has_tls
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
