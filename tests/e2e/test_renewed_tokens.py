"""Tokens that live for a second, in files that are written again as late as possible."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from aiosemel import (
    Consumer,
    ConsumerOptions,
    ConsumerRecord,
    OffsetReset,
    Outputs,
    ProducerOptions,
    ProducerRecord,
    Security,
    SemelClient,
)
from aiosemel.errors import SaslAuthenticationError, TransactionAbortedError
from semel_local import ProcessCluster
from semel_local.layout import Role

pytestmark = pytest.mark.slow

ISSUER, AUDIENCE = "https://issuer.example", "semel"
FROM_THE_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
LIFE_S = 1.0
RUN_S = 4.0
"""How long clients work: in this time each token is replaced several times."""


@dataclass
class TokenFile:
    """A token in a file."""

    signer: ECKey
    path: Path
    subject: str

    def write(self, lives_s: float) -> None:
        """Replace the token as a careful renewer does: the file is never half written."""
        claims = {
            "sub": self.subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": time.time() + lives_s,
        }
        fresh = self.path.with_suffix(".new")
        fresh.touch(mode=0o600)
        header = {"alg": "ES256", "kid": self.signer.kid}
        fresh.write_text(jwt.encode(header, claims, self.signer))
        fresh.replace(self.path)

    async def renew(self) -> None:
        """Write a new token a moment before the one before expires."""
        while True:
            self.write(LIFE_S)
            await asyncio.sleep(LIFE_S * 0.9)


@dataclass
class Secured:
    """A cluster of processes whose listeners ask for tokens, and the token of its clients."""

    cluster: ProcessCluster
    token: TokenFile
    services: TokenFile
    keys: Path

    def change_key(self) -> None:
        """Accept tokens of another key only, and let new tokens be of that key."""
        signer = _write_key(self.keys, "another")
        for each in (self.token, self.services):
            each.signer = signer
            each.write(LIFE_S)

    def client(self) -> SemelClient:
        security = Security(tls=False, token=self.token.path)
        return SemelClient(self.cluster.bootstrap, security=security)


@asynccontextmanager
async def secured_cluster(folder: Path) -> AsyncIterator[Secured]:
    """Run a cluster whose services, too, show tokens that live for a second."""
    keys = folder / "keys.json"
    signer = _write_key(keys, "key")
    services = TokenFile(signer, folder / "services.token", "services")
    clients = TokenFile(signer, folder / "clients.token", "app")
    settings: dict[str, str | int] = {
        "listener_security_protocol_map": "default:SASL_PLAINTEXT",
        "sasl_oauthbearer_jwks_endpoint_url": keys.as_uri(),
        "sasl_oauthbearer_expected_issuer": ISSUER,
        "sasl_oauthbearer_expected_audience": AUDIENCE,
        "sasl_oauthbearer_clock_skew_seconds": 0,
        "sasl_oauthbearer_token_location": str(services.path),
        "cluster_principals": "User:services",
    }
    for each in (services, clients):
        each.write(LIFE_S)
    renewing = [asyncio.create_task(each.renew()) for each in (services, clients)]
    try:
        async with ProcessCluster(
            folder / "cluster",
            settings=dict.fromkeys(Role, settings),
            security=Security(tls=False, token=clients.path),
        ) as cluster:
            yield Secured(cluster, clients, services, keys)
    finally:
        for task in renewing:
            task.cancel()


def _write_key(path: Path, name: str) -> ECKey:
    key = ECKey.generate_key("P-256", {"kid": name, "use": "sig"})
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    fresh.replace(path)
    return key


@pytest.mark.parametrize("key_changes", [False, True])
async def test_clients_and_services_outlive_their_tokens(tmp_path: Path, key_changes: bool) -> None:
    async with secured_cluster(tmp_path) as secured, secured.client() as client:
        await client.admin().create_topic("orders", partitions=2)
        await client.admin().create_topic("bills", partitions=2)
        transformation = client.transform(
            source=["orders"],
            group="biller",
            transactional_id="biller-0",
            handler=_bill,
            producer_options=ProducerOptions(max_block_ms=10_000),
        )
        billing = asyncio.create_task(transformation.run())
        until, sent = time.monotonic() + RUN_S, 0
        while time.monotonic() < until:
            if key_changes and sent == 5:
                secured.change_key()
            await client.producer().send_and_wait("orders", b"%d" % sent)
            sent += 1
            await client.admin().list_topics()
        found = await _read(client, sent)
        transformation.stop()
        await billing
    assert sorted(found) == sorted(b"bill of %d" % each for each in range(sent))
    assert transformation.stats.aborted == 0


async def test_clients_of_a_token_that_is_renewed_too_late_go_on_once_it_is(
    tmp_path: Path,
) -> None:
    """Meanwhile, every call says which file holds an expired token."""
    async with secured_cluster(tmp_path) as secured:
        late = TokenFile(secured.token.signer, tmp_path / "late.token", "late")
        late.write(2)
        security = Security(tls=False, token=late.path)
        async with SemelClient(secured.cluster.bootstrap, security=security) as client:
            await client.admin().create_topic("orders", partitions=1)
            consumer = client.consumer("readers", FROM_THE_START)
            consumer.subscribe(["orders"])
            await client.producer().send_and_wait("orders", b"before")
            assert await _next(consumer) == b"before"
            with pytest.raises(SaslAuthenticationError, match=r"late\.token expired at"):
                await _send_on(client)
            late.write(60)
            await client.producer().send_and_wait("orders", b"after")
            while await _next(consumer) != b"after":
                pass
            await consumer.close()


async def test_producers_outlive_the_secret_of_their_producer_tokens(tmp_path: Path) -> None:
    """All services know another secret from one moment on: no step of a careful change."""
    secrets = tmp_path / "secrets"
    _write_secret(secrets, "a")
    settings = {role: {"producer_token_secrets_file": str(secrets)} for role in Role}
    async with (
        ProcessCluster(tmp_path / "cluster", settings=settings) as cluster,
        SemelClient(cluster.bootstrap) as client,
        client.transactional_producer("orders-0") as transactional,
    ):
        await client.admin().create_topic("orders", partitions=1)
        await client.admin().create_topic("bills", partitions=2)
        await transactional.init_transactions()
        await client.producer().send_and_wait("orders", b"1")
        async with transactional.transaction() as transaction:
            await transaction.send("bills", b"1")
        _write_secret(secrets, "b")
        for name in cluster.names:
            await cluster.restart(name)
        await client.producer().send_and_wait("orders", b"2")
        with pytest.raises(TransactionAbortedError, match="producer_token"):
            async with transactional.transaction() as transaction:
                await transaction.send("bills", b"lost")
        async with transactional.transaction() as transaction:
            await transaction.send("bills", b"2")
        assert await _read(client, 2) == [b"1", b"2"]


def _write_secret(path: Path, letter: str) -> None:
    path.touch(mode=0o600)
    path.write_text(letter * 32)


async def test_commands_that_run_for_long_outlive_their_tokens(tmp_path: Path) -> None:
    async with secured_cluster(tmp_path) as secured:
        options = ("--bootstrap", secured.cluster.bootstrap)
        token = ("--no-tls", "--token-file", str(secured.token.path))
        semel = (sys.executable, "-c", "from semel_cli.main import main; main()", *token)
        await _run(*semel, "topics", "create", "orders", *options)
        reading = ("-g", "g", "--from-beginning", "-n", str(int(RUN_S / 0.1)))
        lines = [b"%d\n" % each for each in range(int(RUN_S / 0.1))]
        producing, consuming = await asyncio.gather(
            _begin(*semel, "produce", "orders", *options),
            _begin(*semel, "consume", "orders", *options, *reading),
        )
        assert producing.stdin is not None
        for line in lines:
            producing.stdin.write(line)
            await asyncio.sleep(0.1)
        producing.stdin.close()
        ends = await asyncio.gather(producing.communicate(), consuming.communicate())
        assert [producing.returncode, consuming.returncode] == [0, 0], ends
        assert ends[0][1] == b"%d records stored in orders\n" % len(lines)
        assert not ends[1][1]
        assert sorted(ends[1][0].splitlines(keepends=True)) == sorted(lines)


async def _begin(*command: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


async def _run(*command: str) -> None:
    process = await _begin(*command)
    _, errors = await process.communicate()
    assert process.returncode == 0, errors


async def _bill(records: Sequence[ConsumerRecord], _: Outputs) -> list[ProducerRecord]:
    return [ProducerRecord(topic="bills", value=b"bill of " + (r.value or b"")) for r in records]


async def _read(client: SemelClient, count: int) -> list[bytes]:
    """Read bills until there are so many."""
    async with client.consumer(options=FROM_THE_START) as consumer:
        consumer.assign([("bills", 0), ("bills", 1)])
        found: list[bytes] = []
        async with asyncio.timeout(20):
            while len(found) < count:
                for records in (await consumer.poll()).values():
                    found += [record.value or b"" for record in records]
        return found


async def _send_on(client: SemelClient) -> None:
    while True:
        await client.producer().send_and_wait("orders", b"meanwhile")


async def _next(consumer: Consumer) -> bytes | None:
    """Return the next record; a poll that is refused is made again."""
    async with asyncio.timeout(20):
        while True:
            with suppress(SaslAuthenticationError):
                for records in (await consumer.poll(max_records=1)).values():
                    return records[0].value
