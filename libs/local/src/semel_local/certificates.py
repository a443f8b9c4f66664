"""Throw-away certificates of a local cluster: its CA signs them once, and its key is forgotten.

One certificate is for all services, among which it also says who they are; one is for clients. Both
are made again, with another CA, when a file is missing or they are about to expire.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from semel_common.file_modes import make_private_file, make_private_folder

if TYPE_CHECKING:
    from semel_common.wire.client_security import Security

SERVICES = "semel://local/services"
CLIENT = "semel://local/client"
LIFE = timedelta(days=365)
RENEWED_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class LocalCertificates:
    """The files of a cluster's certificates."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate of the authority that signs all others."""
        return self.folder / "ca.pem"

    @property
    def client_certificate(self) -> Path:
        """The certificate that clients show."""
        return self.folder / "client.pem"

    @property
    def client_key(self) -> Path:
        """Its private key."""
        return self.folder / "client.key"

    @property
    def service_certificate(self) -> Path:
        """The certificate that services show, to clients and to one another."""
        return self.folder / "services.pem"

    @property
    def service_key(self) -> Path:
        """Its private key."""
        return self.folder / "services.key"

    def settings(self) -> dict[str, str]:
        """Return the settings with which services present their certificate."""
        return {
            "listener_security_protocol_map": "default:SSL",
            "ssl_certificate_location": str(self.service_certificate),
            "ssl_key_location": str(self.service_key),
            "ssl_ca_location": str(self.ca),
            "ssl_client_auth": "required",
            "cluster_principals": f"User:{SERVICES}",
        }

    def security(self) -> "Security":
        """Return what clients connect with."""
        from semel_common.wire.client_security import Security  # noqa: PLC0415 - loads gRPC

        return Security(
            ssl_ca_location=self.ca,
            ssl_certificate_location=self.client_certificate,
            ssl_key_location=self.client_key,
        )

    def make(self) -> None:
        """Make the certificates that are missing or expire soon."""
        now = datetime.now(UTC)
        if self._good_until() > now + RENEWED_BEFORE:
            return
        make_private_folder(self.folder)
        authority = _Authority(now)
        _write(self.ca, authority.certificate.public_bytes(Encoding.PEM))
        for name, identity in (("services", SERVICES), ("client", CLIENT)):
            key, certificate = authority.sign(identity)
            private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            _write(self.folder / f"{name}.key", private)
            _write(self.folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM))

    def _good_until(self) -> datetime:
        certificates = (self.ca, self.client_certificate, self.service_certificate)
        keys = (self.client_key, self.service_key)
        try:
            if not all(path.exists() for path in keys):
                return datetime.min.replace(tzinfo=UTC)
            return min(
                x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
                for path in certificates
            )
        except (OSError, ValueError):
            return datetime.min.replace(tzinfo=UTC)


class _Authority:
    """The signer, as long as this object lives."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._key = generate_private_key(SECP256R1())
        self._name = _name("Semel, a throw-away CA")
        usage = _key_usage(signs_certificates=True)
        self.certificate = self._sign(self._name, self._key, [(_IS_CA, True), (usage, True)])

    def sign(self, identity: str) -> tuple[EllipticCurvePrivateKey, x509.Certificate]:
        """Return a key with its certificate, for this machine and this identity."""
        key = generate_private_key(SECP256R1())
        names = [
            x509.UniformResourceIdentifier(identity),
            x509.DNSName("localhost"),
            *(x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "::1")),
        ]
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = self._sign(
            _name(identity),
            key,
            [
                (_IS_NO_CA, True),
                (_key_usage(signs_certificates=False), True),
                (x509.ExtendedKeyUsage(purposes), False),
                (x509.SubjectAlternativeName(names), False),
            ],
        )
        return key, certificate

    def _sign(
        self,
        subject: x509.Name,
        key: EllipticCurvePrivateKey,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(minutes=5))
            .not_valid_after(self._now + LIFE)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self._key, SHA256())


_IS_CA = x509.BasicConstraints(ca=True, path_length=0)
_IS_NO_CA = x509.BasicConstraints(ca=False, path_length=None)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write(path: Path, content: bytes) -> None:
    """Put a file in its place as a whole, readable by its owner only."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    make_private_file(new)
    new.write_bytes(content)
    new.replace(path)
