"""Certificates of a local cluster: made once, and again when they must be."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from semel_local import certificates
from semel_local.certificates import CLIENT, SERVICES, LocalCertificates


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_certificates_stay_from_start_to_start(tmp_path: Path) -> None:
    LocalCertificates(tmp_path).make()
    before = contents(tmp_path)
    LocalCertificates(tmp_path).make()
    assert contents(tmp_path) == before
    assert sorted(before) == [
        "ca.pem",
        "client.key",
        "client.pem",
        "services.key",
        "services.pem",
    ], "the key of the CA is nowhere"


@pytest.mark.parametrize("name", ["ca.pem", "client.key", "client.pem", "services.pem"])
def test_all_are_made_again_when_one_is_missing(tmp_path: Path, name: str) -> None:
    LocalCertificates(tmp_path).make()
    before = contents(tmp_path)
    (tmp_path / name).unlink()
    LocalCertificates(tmp_path).make()
    after = contents(tmp_path)
    assert all(after[each] != before[each] for each in before)


def test_all_are_made_again_before_they_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "LIFE", timedelta(days=29))
    LocalCertificates(tmp_path).make()
    before = contents(tmp_path)
    monkeypatch.undo()
    LocalCertificates(tmp_path).make()
    assert contents(tmp_path)["ca.pem"] != before["ca.pem"]


@pytest.mark.parametrize(("name", "identity"), [("services", SERVICES), ("client", CLIENT)])
def test_each_certificate_fits_its_key_and_says_who_it_is(
    tmp_path: Path, name: str, identity: str
) -> None:
    LocalCertificates(tmp_path).make()
    chain, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
    ssl.create_default_context().load_cert_chain(chain, key)
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [identity]
    assert certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=300)
    assert key.stat().st_mode & 0o077 == 0
