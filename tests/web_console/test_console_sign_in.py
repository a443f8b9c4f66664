"""The path of a user who signs in with a token: the session has this user's rights alone."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio
from html_check import PageReader, read_page
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet
from web_console.console_stage import console_stage

from aiosemel import AclBinding, AclOperation, ResourceType, Security, SemelClient
from semel_console.mode import Mode
from semel_console.options import ConsoleOptions
from semel_console.web.app import make_app
from semel_local import ProcessCluster
from semel_local.layout import Role

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ISSUER, AUDIENCE = "https://issuer.example", "semel"


@dataclass(frozen=True, slots=True)
class Signed:
    """A cluster that checks tokens, and what signs them."""

    cluster: ProcessCluster
    signer: ECKey

    def token(self, name: str, *, signer: ECKey | None = None, lives_s: float = 600) -> str:
        """Return a token of a user."""
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + lives_s}
        key = signer or self.signer
        return jwt.encode({"alg": "ES256", "kid": "key"}, claims, key)

    def client(self, name: str) -> SemelClient:
        """Return a client of a user."""
        security = Security(tls=False, token=self.token(name))
        return SemelClient(self.cluster.bootstrap, security=security)


@asynccontextmanager
async def browser_at(
    bootstrap: str,
    *,
    port: int = 80,
    at: str = "127.0.0.1",
    shown: Callable[[], str] | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Open a browser, ``at`` an address, before a console that asks for tokens.

    ``shown`` returns the token that the console shows the cluster for its user, who signs in with
    the first one; None: always that of the user.
    """
    options = ConsoleOptions(bootstrap=bootstrap, asks_for_tokens=True, mode=Mode.OPERATOR)

    def security_of(token: str | None) -> Security | None:
        source = shown if shown and token == shown() else token
        return Security(tls=False, token=source) if source else None

    app = make_app(options, security_of)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app, client=(at, 40_000)),
            base_url=f"http://127.0.0.1:{port}",
            headers={"sec-fetch-site": "same-origin"},
        ) as browser,
    ):
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def signed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Signed]:
    folder = tmp_path_factory.mktemp("signed")
    signer = ECKey.generate_key("P-256", {"kid": "key", "use": "sig"})
    keys = folder / "keys.json"
    keys.write_text(json.dumps(KeySet([signer]).as_dict(private=False)))
    services = folder / "services.token"
    services.touch(mode=0o600)
    settings: dict[str, str | int] = {
        "listener_security_protocol_map": "default:SASL_PLAINTEXT",
        "sasl_oauthbearer_jwks_endpoint_url": keys.as_uri(),
        "sasl_oauthbearer_expected_issuer": ISSUER,
        "sasl_oauthbearer_expected_audience": AUDIENCE,
        "sasl_oauthbearer_token_location": str(services),
        "cluster_principals": "User:services",
        "authorizer": "acls",
        "super_users": "User:ada",
    }
    claims = {"sub": "services", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 3_600}
    services.write_text(jwt.encode({"alg": "ES256", "kid": "key"}, claims, signer))
    async with ProcessCluster(
        folder / "cluster",
        settings=dict.fromkeys(Role, settings),
        security=Security(tls=False, token=services),
    ) as cluster:
        made = Signed(cluster, signer)
        async with made.client("ada") as client:
            await client.admin().create_topic("orders", partitions=1)
        yield made


async def page(browser: httpx.AsyncClient, path: str, *, status: int = 200) -> PageReader:
    """Return a page."""
    answer = await browser.get(path)
    assert answer.status_code == status, answer.text
    read = read_page(answer.text)
    assert read.offences == []
    return read


async def sign_in(browser: httpx.AsyncClient, token: str) -> httpx.Response:
    """Send the form with a token."""
    return await browser.post("/sign-in", data={"token": token})


async def test_no_page_is_shown_before_a_user_has_signed_in(signed: Signed) -> None:
    async with browser_at(signed.cluster.bootstrap) as browser:
        for path in ("/", "/transactions", "/audit", "/tail?topic=orders", "/nothing"):
            answer = await browser.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert (await browser.post("/action?do=abort")).headers["location"] == "/sign-in"
        assert (await browser.get("/events")).status_code == 401
        assert "Bearer token" in (await page(browser, "/sign-in")).text


async def test_a_token_that_the_cluster_refuses_begins_no_session(signed: Signed) -> None:
    other = ECKey.generate_key("P-256", {"kid": "key", "use": "sig"})
    async with browser_at(signed.cluster.bootstrap) as browser:
        refused = {
            "": 400,
            "<script>alert(1)</script>": 403,
            signed.token("ada", signer=other): 403,
            signed.token("ada", lives_s=-600): 403,
        }
        for token, status in refused.items():
            answer = await sign_in(browser, token)
            assert answer.status_code == status, token
            assert read_page(answer.text).offences == []
            assert "make a new client" not in answer.text, "advice for programmers"
            assert "set-cookie" not in answer.headers
        assert (await browser.get("/")).headers["location"] == "/sign-in"


async def test_a_session_has_the_rights_of_its_user_until_the_user_signs_out(
    signed: Signed,
) -> None:
    async with (
        browser_at(signed.cluster.bootstrap) as ada,
        browser_at(signed.cluster.bootstrap) as eve,
    ):
        answer = await sign_in(ada, signed.token("ada"))
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert signed.token("ada") not in cookie
        assert "/topic?name=orders" in (await page(ada, "/topics")).links
        assert "User:ada" in (await page(ada, "/audit?call=CreateTopics")).text
        assert (await sign_in(eve, signed.token("eve"))).status_code == 303
        assert "/topic?name=orders" not in (await page(eve, "/topics")).links
        assert "The audit cannot be shown." in (await page(eve, "/audit")).text
        await page(eve, "/topic?name=orders", status=403)
        [(name, kept)] = ada.cookies.items()
        assert (await ada.post("/sign-out")).headers["location"] == "/sign-in"
        assert not ada.cookies
        ada.cookies.set(name, kept)
        assert (await ada.get("/topics")).status_code == 303, "the session has ended"
        assert (await eve.get("/topics")).status_code == 200, "another session goes on"


@pytest.mark.parametrize("path", ["/", "/transactions", "/topic?name=orders", "/rules"])
async def test_a_session_ends_when_the_cluster_refuses_its_token(signed: Signed, path: str) -> None:
    shown = signed.token("ada")
    async with browser_at(signed.cluster.bootstrap, shown=lambda: shown) as browser:
        await sign_in(browser, shown)
        assert (await browser.get(path)).status_code == 200
        shown = signed.token("ada", lives_s=-600)
        answer = await browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?refused=yes")
        told = await page(browser, answer.headers["location"])
        assert "The cluster no longer accepts the token of your session" in told.text
        assert (await browser.get(path)).headers["location"] == "/sign-in"


async def test_an_action_is_the_call_of_the_signed_in_user(signed: Signed) -> None:
    async with (
        signed.client("ada") as client,
        browser_at(signed.cluster.bootstrap, at="203.0.113.9") as ada,
        browser_at(signed.cluster.bootstrap) as eve,
    ):
        producer = client.transactional_producer("nightly")
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"open")
        await sign_in(ada, signed.token("ada"))
        await sign_in(eve, signed.token("eve"))
        described = await client.admin().describe_transactions("nightly")
        address = (
            f"/action?do=fence&transactional_id=nightly&epoch=0&producer_id={described.producer_id}"
        )
        reason = {"reason": "its host is lost"}
        assert (await eve.post(address, data=reason)).status_code == 403
        assert (await ada.post(address, data=reason)).status_code == 303
        text = (await page(ada, "/audit?call=FenceProducer&principal=User%3Aada")).text
        assert "its host is lost" in text
        assert "for the browser at 203.0.113.9" in text, "services see the console's address only"
        assert "User:eve" not in text


async def test_consoles_at_several_ports_of_a_host_have_sessions_of_their_own(
    signed: Signed,
) -> None:
    async with (
        browser_at(signed.cluster.bootstrap, port=9080) as one,
        browser_at(signed.cluster.bootstrap, port=9081) as other,
    ):
        await sign_in(one, signed.token("ada"))
        other.cookies = one.cookies  # A browser has the same ones for all ports.
        await sign_in(other, signed.token("ada"))
        one.cookies = other.cookies
        assert (await one.get("/topics")).status_code == 200
        await other.post("/sign-out")
        one.cookies = other.cookies
        assert (await one.get("/topics")).status_code == 200
        assert (await other.get("/topics")).status_code == 303


async def test_payloads_need_read_and_the_audit_names_the_user_who_saw_them(
    signed: Signed,
) -> None:
    async with (
        signed.client("ada") as client,
        browser_at(signed.cluster.bootstrap) as browser,
    ):
        await client.admin().access.create_acls(
            [
                AclBinding(
                    resource_type=ResourceType.TOPIC,
                    resource_name="orders",
                    principal=f"User:{name}",
                    operation=operation,
                )
                for name, operation in (("bob", AclOperation.DESCRIBE), ("carl", AclOperation.READ))
            ]
        )
        await client.producer().send_and_wait("orders", b"a secret value")
        shown = "/messages?topic=orders&partition=0&isolation=read_uncommitted"
        await sign_in(browser, signed.token("bob"))
        text = (await page(browser, shown)).text
        assert "a secret value" not in text
        assert "The records cannot be shown." in text
        await sign_in(browser, signed.token("carl"))
        assert "a secret value" in (await page(browser, shown)).text
        entries = (await client.admin().operators.list_audit(actions=("Fetch",))).entries
        assert [each.principal for each in entries if each.end == "DONE"] == ["User:carl"]
        assert "records of orders-0" in entries[0].reason


async def test_a_cluster_that_checks_no_tokens_lets_no_user_sign_in() -> None:
    """Else any text would be a token, and all users would have the rights of the console."""
    async with console_stage() as stage, browser_at(stage.cluster.bootstrap) as browser:
        answer = await sign_in(browser, "anything")
        assert answer.status_code == 403
        assert "The cluster checks no tokens at this listener" in answer.text
        assert (await browser.get("/")).headers["location"] == "/sign-in"
