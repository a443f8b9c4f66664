"""The Secrets that cert-manager would make: one for each Certificate, all from one CA."""

import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=1)
_USAGES = {
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
}


def secrets(text: str) -> str:
    """Return the Secrets that the Certificates among some objects ask for, to be applied."""
    asked = [
        each["spec"] for each in yaml.safe_load_all(text) if each and each["kind"] == "Certificate"
    ]
    key = generate_private_key(SECP256R1())
    (root,) = (question for question in asked if question.get("isCA"))
    name = _name(root["commonName"])
    authority = _sign(name, name, key, key, [(_basic(ca=True), True)])
    made = [_secret(question, authority, key) for question in asked if not question.get("isCA")]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def _secret(asked: Any, authority: x509.Certificate, signer: EllipticCurvePrivateKey) -> Any:  # noqa: ANN401 - JSON
    key = generate_private_key(SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in asked.get("dnsNames", ())]
    names += [x509.UniformResourceIdentifier(question) for question in asked["uris"]]
    usages = [_USAGES[question] for question in asked["usages"] if question in _USAGES]
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (_basic(ca=False), True),
        (x509.SubjectAlternativeName(names), False),
        (x509.ExtendedKeyUsage(usages), False),
    ]
    subject = _name(asked["commonName"])
    certificate = _sign(subject, authority.subject, key, signer, extensions)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = {
        "tls.crt": certificate.public_bytes(Encoding.PEM),
        "tls.key": private,
        "ca.crt": authority.public_bytes(Encoding.PEM),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": asked["secretName"]},
        "type": "kubernetes.io/tls",
        "data": {file: b64encode(content).decode() for file, content in files.items()},
    }


def _sign(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    signer: EllipticCurvePrivateKey,
    extensions: Iterable[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, SHA256())


def _basic(*, ca: bool) -> x509.BasicConstraints:
    return x509.BasicConstraints(ca=ca, path_length=None)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
