"""`semel recover` asks the controller where all need certificates: in the instance's own name."""

from pathlib import Path

import pytest

from recovery.stage import REFUSED, refused, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAME = "broker-1"


async def test_recovery_needs_a_certificate_where_all_do(tmp_path: Path) -> None:
    async with stage(tmp_path, tls=True) as on:
        await on.spread("orders")
        await on.copy(NAME)
        async with on.client.producer() as producer:
            await producer.send_and_wait("orders", b"since", partition=1)
        await on.put_back(NAME)
        assert REFUSED in await refused(on, NAME)

        files = on.cluster.certificates
        assert files
        believing = ("--tls-ca", str(files.ca))
        client = (*believing, "--tls-cert", files.client_certificate, "--tls-key", files.client_key)
        service = (
            *believing,
            "--tls-cert",
            files.service_certificate,
            "--tls-key",
            files.service_key,
        )
        for nobody in ((), believing):
            told = await on.recover(NAME, "--dry-run", status=1, security=nobody)
            assert "start it first" in told["sentence"]
        told = await on.recover(NAME, "--dry-run", status=1, security=client)
        assert "show the instance's own certificate" in told["sentence"]

        recovered = await on.recover(NAME, security=service)
        assert recovered["name"] == NAME
        await on.cluster.start(NAME)
        async with on.client.producer() as producer:
            await producer.send_and_wait("orders", b"again", partition=1)
