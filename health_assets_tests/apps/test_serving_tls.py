"""The endpoint over HTTPS, with a certificate of its own making."""

import datetime as dt
import ipaddress
import socket
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from health_assets.apps.serving.server import configured
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets_tests.support.serving_made import fill_agents, score, served, state


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "cert.pem", folder / "key.pem"
    cert_path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_path, key_path


def test_with_a_certificate_https_is_spoken_and_nothing_else(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    cert, key = certificate(tmp_path)
    with served(tmp_path / "health.duckdb", tls_cert=cert, tls_key=key) as server:
        assert server.ask("/agents/fine").json["agent_id"] == "fine"
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as plain:
            plain.sendall(b"GET /agents/fine HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"fine" not in plain.recv(65536)


def test_a_certificate_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = certificate(other)
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    settings = Settings(warehouse=str(tmp_path / "health.duckdb"))
    for pair in ((tmp_path / "none.pem", key), (text, key), (cert, other_key), (cert, tmp_path / "none"), (cert, None)):
        with pytest.raises(HealthAssetsError, match="cannot use the TLS certificate") as caught:
            configured(settings, *pair)
        assert "\n" not in str(caught.value)
