"""Signed health documents: what the endpoint signs, and what `check --signed` believes of whom."""

import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc import jws
from joserfc.jwk import OKPKey

from health_assets.apps.serving.document_signing import NO_LIBRARY, DocumentSigner
from health_assets.consumer import signatures
from health_assets.core.errors import HealthAssetsError
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.health_servers import Behaviour, Exchange, Host, answers, document
from health_assets_tests.support.serving_made import Served, fill_agents, readers_in_this_process, score, served, state

DOCUMENT = "/agents/fine/.well-known/agent-health"
SIGNATURE, KEYS = f"{DOCUMENT}.jws", "/.well-known/jwks.json"


@pytest.fixture(scope="module", autouse=True)
def _readers() -> Iterator[None]:
    with readers_in_this_process():
        yield


def pem_of(key: Any, encryption: KeySerializationEncryption | None = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key.pem"
    path.write_bytes(pem_of(Ed25519PrivateKey.generate()))
    return path


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signed") / "health.duckdb"
    fill_agents(path, (state("fine"), score("fine")), (state("a/b"), score("a/b")))
    return path


@pytest.fixture(scope="module")
def server(warehouse: Path, key_file: Path) -> Iterator[Served]:
    with served(warehouse, signing_key=key_file, host_agent="fine") as running:
        yield running


def url_of(server: Served, path: str = "/agents/fine") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


# -- the endpoint --


def test_the_payload_of_a_signature_is_the_document_to_the_byte(server: Served, key_file: Path) -> None:
    key = OKPKey.import_key(key_file.read_bytes())
    for path in (DOCUMENT, "/.well-known/agent-health", "/agents/a%2Fb/.well-known/agent-health"):
        plain, signed = server.ask(path), server.ask(f"{path}.jws")
        assert (signed.status, signed.headers["content-type"]) == (200, "application/jose")
        token = jws.deserialize_compact(signed.body, key, algorithms=["Ed25519"])
        assert token.payload == plain.body
        assert token.headers() == {"alg": "Ed25519", "typ": "agent-health+jws", "kid": key.thumbprint()}


def test_the_set_of_keys_holds_the_public_key_and_nothing_private(server: Served, key_file: Path) -> None:
    reply = server.ask(KEYS)
    [key] = reply.json["keys"]
    assert key.keys() == {"kty", "crv", "x", "kid", "use", "alg"}
    assert key["kid"] == OKPKey.import_key(key_file.read_bytes()).thumbprint()


def test_a_signature_has_no_conditions_of_the_document_and_no_page(server: Served) -> None:
    tag = server.ask(DOCUMENT).headers["etag"]
    reply = server.ask(SIGNATURE, headers={"If-None-Match": tag, "Accept": "text/html"})
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    assert "etag" not in reply.headers


def test_an_agent_that_is_not_known_has_no_signature(server: Served) -> None:
    assert server.ask("/agents/nobody/.well-known/agent-health.jws").status == 404


def test_the_document_is_the_same_with_a_key_and_without_one_there_is_no_signature(
    server: Served, warehouse: Path
) -> None:
    with served(warehouse, host_agent="fine") as unsigned:
        assert unsigned.ask(DOCUMENT).body == server.ask(DOCUMENT).body
        assert {unsigned.ask(path).status for path in (SIGNATURE, "/.well-known/agent-health.jws", KEYS)} == {404}
        assert not [path for path in unsigned.ask("/openapi.json").json["paths"] if "jws" in path or "jwks" in path]


def test_where_documents_are_closed_signatures_are_closed_too(warehouse: Path, key_file: Path) -> None:
    with served(warehouse, signing_key=key_file, anonymous_role="none", is_ready=False) as closed:
        assert (closed.ask(SIGNATURE).status, closed.ask(KEYS).status) == (401, 200)


def public_pem() -> bytes:
    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


ENCRYPTED = pem_of(Ed25519PrivateKey.generate(), BestAvailableEncryption(b"a password"))


@pytest.mark.parametrize(
    "content",
    [b"", b"no key", pem_of(generate_private_key(SECP256R1())), public_pem(), ENCRYPTED],
    ids=["empty", "text", "P-256", "public", "encrypted"],
)
def test_a_file_that_is_no_unencrypted_private_key_for_ed25519_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(HealthAssetsError, match=r"HEALTH_SIGNING_KEY: .* is no unencrypted private key for Ed25519"):
        DocumentSigner(path)


def test_a_key_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="HEALTH_SIGNING_KEY: cannot read"):
        DocumentSigner(tmp_path / "nowhere.pem")


def test_without_the_package_both_sides_say_what_to_install(
    key_file: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(HealthAssetsError, match=r"health-assets\[signing\]") as refused:
        DocumentSigner(key_file)
    assert str(refused.value) == NO_LIBRARY
    done = command_here("check", url_of(server), "--allow-private", "--signed")
    assert (done.returncode, done.stderr) == (1, f"health-assets: {signatures.NO_LIBRARY}\n")


# -- the consumer --


def test_check_verifies_the_signature_of_the_endpoint(server: Served, key_file: Path) -> None:
    key_id = OKPKey.import_key(key_file.read_bytes()).thumbprint()
    plain = command_here("check", url_of(server), "--allow-private")
    for more in (["--signed"], ["--signed", "--key-id", key_id], ["--key-id", key_id]):
        done = command_here("check", url_of(server), "--allow-private", *more)
        assert done.returncode == plain.returncode
        assert f"Signed by the key {key_id}." in done.stdout
    as_json = command_here("check", url_of(server), "--allow-private", "--signed", "--json")
    assert json.loads(as_json.stdout)["signature"] == {"key_id": key_id, "error": None}
    assert "signature" not in json.loads(command_here("check", url_of(server), "--allow-private", "--json").stdout)


def test_check_of_another_key_than_the_one_that_must_have_signed_fails(server: Served) -> None:
    done = command_here("check", url_of(server), "--allow-private", "--signed", "--key-id", "another")
    assert done.returncode == 9
    assert f"Not signed: {KEYS} does not hold the key that must have signed it." in done.stdout


def test_check_of_an_agent_that_signs_nothing_fails_with_a_code_of_its_own() -> None:
    with Host(answers(document())) as host:
        done = command_here("check", host.url, "--allow-private", "--signed")
    assert (done.returncode, "Not signed: " in done.stdout) == (9, True)


KEY, OTHER = (OKPKey.import_key(pem_of(Ed25519PrivateKey.generate())) for _ in range(2))
BODY = json.dumps(document()).encode()
HEADER = {"alg": "Ed25519", "typ": "agent-health+jws"}


def signed_by(key: OKPKey, body: bytes = BODY, **header: str) -> bytes:
    return jws.serialize_compact(HEADER | header, body, key, algorithms=["Ed25519"]).encode()


def key_set(*keys: OKPKey, **more: str) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) | more for key in keys]}).encode()


def by_suffix(**behaviours: Behaviour) -> Behaviour:
    """Behaves by the last part of the path: `jws`, `json`, else as for the document."""

    def behave(exchange: Exchange) -> None:
        last = exchange.request.path.partition("?")[0].rpartition(".")[2]
        behaviours.get(last, answers(BODY))(exchange)

    return behave


def fetched(token: bytes, keys: bytes, key_id: str | None = None) -> signatures.Signature:
    with Host(by_suffix(jws=answers(token), json=answers(keys))) as host:
        _, signature = signatures.fetch_signed(host.url, key_id=key_id, timeout_s=10, allow_private=True)
    return signature


def test_the_key_that_signed_is_told_by_its_thumbprint() -> None:
    for keys in (key_set(KEY), key_set(OTHER, KEY), key_set(OTHER, KEY, kid="same")):
        assert fetched(signed_by(KEY), keys) == signatures.Signature(key_id=KEY.thumbprint())


def test_two_keys_of_one_name_do_not_make_a_stranger_the_key_that_must_have_signed() -> None:
    for keys in (key_set(OTHER, KEY, kid=KEY.thumbprint()), key_set(KEY, OTHER, kid=KEY.thumbprint())):
        signature = fetched(signed_by(OTHER, kid=KEY.thumbprint()), keys, KEY.thumbprint())
        assert signature == signatures.Signature(fault="its signature does not hold")


UNUSABLE: list[Any] = [
    {"kty": "OKP"},
    {"kty": "OKP", "crv": "Ed25519"},
    {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
    {"kty": "OKP", "crv": "Ed25519", "x": 5},
    {"kty": "OKP", "crv": "Ed448", "x": "AAAA"},
    {"kty": ["OKP"], "crv": {}},
    {"kty": "EC", "crv": "P-256"},
    {"kty": "AKP", "alg": "ML-DSA-44"},
    {},
    None,
    "a key",
]
"""Keys that are malformed, or of kinds that we do not know."""


@pytest.mark.parametrize("other", UNUSABLE, ids=str)
def test_a_key_that_cannot_be_used_is_ignored_and_the_others_of_its_set_are_not(other: object) -> None:
    public = KEY.as_dict(private=False)
    keys = json.dumps({"keys": [other, public]}).encode()
    assert fetched(signed_by(KEY), keys) == signatures.Signature(key_id=KEY.thumbprint())


def test_the_key_that_must_have_signed_is_found_at_the_end_of_a_long_set() -> None:
    strangers = [OKPKey.generate_key("Ed25519") for _ in range(signatures.MOST_KEYS)]
    signature = fetched(signed_by(KEY), key_set(*strangers, KEY), KEY.thumbprint())
    assert signature == signatures.Signature(key_id=KEY.thumbprint())


def test_no_more_keys_are_tried_than_a_limit() -> None:
    strangers = [OKPKey.generate_key("Ed25519") for _ in range(signatures.MOST_KEYS)]
    signature = fetched(signed_by(KEY), key_set(*strangers, KEY))
    assert signature == signatures.Signature(fault="its signature does not hold")


def unsigned(body: bytes = BODY) -> bytes:
    """What "alg": "none" makes of a document."""
    header = json.dumps(HEADER | {"alg": "none"}).encode()
    return b".".join([*(urlsafe_b64encode(part).rstrip(b"=") for part in (header, body)), b""])


@pytest.mark.parametrize(
    ("token", "keys", "fault"),
    [
        (signed_by(OTHER), key_set(KEY), "its signature does not hold"),
        (signed_by(KEY)[:-8] + b"AAAAAAAA", key_set(KEY), "its signature does not hold"),
        (unsigned(), key_set(KEY), "its signature does not hold"),
        (b"", key_set(KEY), "its signature does not hold"),
        (b"a.b", key_set(KEY), "its signature does not hold"),
        (b"\xff.\xff.\xff", key_set(KEY), "its signature does not hold"),
        (signed_by(KEY, typ="JWT"), key_set(KEY), "its signature is not of the type agent-health+jws"),
        (signed_by(KEY, json.dumps(document("degraded")).encode()), key_set(KEY), signatures.OTHER_DOCUMENT),
        (signed_by(KEY, b"{}"), key_set(KEY), signatures.OTHER_DOCUMENT),
        (signed_by(KEY), b"[]", f"{KEYS} holds no set of keys"),
        (signed_by(KEY), b"no JSON", f"{KEYS} holds no set of keys"),
        (signed_by(KEY), b'{"keys": {}}', f"{KEYS} holds no set of keys"),
        (signed_by(KEY), b'{"keys": [{"kty": "OKP"}]}', f"{KEYS} holds no key for Ed25519"),
        (signed_by(KEY), b'{"keys": []}', f"{KEYS} holds no key for Ed25519"),
        (signed_by(KEY), b"[" * 50_000, f"{KEYS} holds no set of keys"),
        (b"x" * (signatures.MOST_BYTES + 1), key_set(KEY), "of /.well-known/agent-health.jws, its answer is larger than 131,072 bytes"),
    ],
    ids=[
        "another key", "damaged", "none", "empty", "two parts", "no text", "another type", "another document", "no document",
        "a list", "no JSON", "no list", "half a key", "no key", "deep", "large",
    ],
)  # fmt: skip
def test_a_signature_that_does_not_hold_is_none(token: bytes, keys: bytes, fault: str) -> None:
    assert fetched(token, keys) == signatures.Signature(fault=fault)


def test_a_document_that_changed_in_between_is_asked_for_again() -> None:
    newer = json.dumps(document("degraded")).encode()
    bodies = iter([BODY, newer])

    def behave(exchange: Exchange) -> None:
        kind = exchange.request.path.rpartition(".")[2]
        content = {"jws": signed_by(KEY, newer), "json": key_set(KEY)}.get(kind)
        answers(next(bodies) if content is None else content)(exchange)

    with Host(behave) as host:
        answer, signature = signatures.fetch_signed(host.url, timeout_s=10, allow_private=True)
    assert answer.document is not None and answer.document.health.status == "degraded"
    assert signature.key_id == KEY.thumbprint()


def test_a_document_that_a_shared_cache_kept_is_asked_for_without_the_cache() -> None:
    newer = json.dumps(document("degraded")).encode()

    def behave(exchange: Exchange) -> None:
        kind = exchange.request.path.rpartition(".")[2]
        is_fresh = exchange.request.headers.get("cache-control") == "no-cache"
        content = {"jws": signed_by(KEY, newer), "json": key_set(KEY)}.get(kind, newer if is_fresh else BODY)
        answers(content)(exchange)

    with Host(behave) as host:
        answer, signature = signatures.fetch_signed(host.url, timeout_s=10, allow_private=True)
        assert "cache-control" not in host.requests[0].headers
    assert answer.document is not None and answer.document.health.status == "degraded"
    assert signature == signatures.Signature(key_id=KEY.thumbprint())


def test_a_signature_is_asked_for_beside_its_document_and_leads_nowhere_else() -> None:
    moved = answers(b"", "302 Found", headers={"Location": "http://127.0.0.1:9/"})
    with Host(by_suffix(jws=moved)) as host:
        _, signature = signatures.fetch_signed(f"{host.url}/agents/a%2Fb?x=1", timeout_s=10, allow_private=True)
        assert [request.path for request in host.requests][1:] == ["/agents/a%2Fb/.well-known/agent-health.jws?x=1"]
    assert signature.fault == "/agents/a/b/.well-known/agent-health.jws answers HTTP 302"


def test_a_private_address_is_not_asked_for_a_signature_either() -> None:
    with Host(answers(document())) as host:
        answer, signature = signatures.fetch_signed(host.url, timeout_s=10)
        assert host.requests == []
    assert (answer.outcome, signature.fault) == ("private", "there is no valid document that could be signed")
