"""Signatures of health documents: asking for one beside its document, and verifying it.

A signature says which key signed these bytes. The key comes from the same origin, so it tells more than TLS only to who
knows the key: name its thumbprint (RFC 7638).
"""

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from health_assets.consumer.addresses import PINS, PrivateAddressError
from health_assets.consumer.document import HealthDocument, InvalidDocumentError, parse_document
from health_assets.consumer.fetching import Answer, fetch_health_async, limited_body, new_client, run_async
from health_assets.core.errors import HealthAssetsError
from health_assets.core.signature_names import ALGORITHM, KEYS_PATH, SUFFIX, TYPE
from health_assets.core.terminal import printable

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

NO_LIBRARY = "--signed needs another package: pip install 'health-assets[signing]'"
MOST_BYTES = 128 * 1024
MOST_KEYS = 20
_OF_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors that the library raises of tokens and keys whose members have other types than they must have."""
OTHER_DOCUMENT = "its signature is of another document"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The signature of a document, or why there is none that holds.

    Args:
        key_id: thumbprint of the key that signed it.
        fault: the reason, in one sentence without a full stop; None where it holds.
    """

    key_id: str | None = None
    fault: str | None = None


class UnusableError(Exception):
    """There is no signature that holds; the message says why."""


def fetch_signed(
    url: str, *, key_id: str | None = None, timeout_s: float, allow_private: bool = False
) -> tuple[Answer, Signature]:
    """Ask an agent for its health document and the signature of it.

    Args:
        url: as of `fetch_health`.
        key_id: thumbprint of the key that must have signed it; None for any key of the agent's origin.
        timeout_s: most time that each of the two may take, in seconds.
        allow_private: as of `fetch_health`.

    Raises:
        HealthAssetsError: the URL or a limit is impossible, or the package is not installed.
    """
    require_library()

    async def fetch() -> tuple[Answer, Signature]:
        async with new_client(allow_private=allow_private) as client:
            answer, signature = await _fetch_once(client, url, key_id, timeout_s)
            if signature.fault == OTHER_DOCUMENT:
                # a new hour may have come between the two requests, or a shared cache may keep the document of the last
                client.headers["Cache-Control"] = "no-cache"
                answer, signature = await _fetch_once(client, url, key_id, timeout_s)
            return answer, signature

    return run_async(fetch())


def require_library() -> None:
    """Refuse to go on without the package that verifies.

    Raises:
        HealthAssetsError: it is not installed.
    """
    try:
        import joserfc  # noqa: F401
    except ModuleNotFoundError as error:
        raise HealthAssetsError(NO_LIBRARY) from error


async def _fetch_once(
    client: httpx.AsyncClient, url: str, key_id: str | None, timeout_s: float
) -> tuple[Answer, Signature]:
    answer = await fetch_health_async(client, url, timeout_s=timeout_s)
    if answer.document is None:
        return answer, Signature(fault="there is no valid document that could be signed")
    place = httpx.URL(answer.url)
    path, _, query = place.raw_path.partition(b"?")
    beside = place.copy_with(raw_path=path + SUFFIX.encode() + (b"?" + query if query else b""))
    try:
        async with asyncio.timeout(timeout_s):
            token = await _body_of(client, beside)
            keys = await _body_of(client, place.copy_with(path=KEYS_PATH, query=None))
        return answer, Signature(key_id=verified(token, keys, answer.document, key_id))
    except UnusableError as error:
        return answer, Signature(fault=str(error))
    except TimeoutError:
        return answer, Signature(fault=f"its signature did not come within {timeout_s:g} s")
    except (httpx.HTTPError, PrivateAddressError, OSError):
        return answer, Signature(fault="its signature cannot be fetched")


async def _body_of(client: httpx.AsyncClient, url: httpx.URL) -> bytes:
    """The body at an address; a redirect is not followed."""
    async with client.stream("GET", url, headers={"Accept": "*/*"}, extensions={PINS: {}}) as response:
        if response.status_code != 200:
            raise UnusableError(f"{printable(url.path)} answers HTTP {response.status_code}")
        body, fault = await limited_body(response, MOST_BYTES)
    if fault:
        raise UnusableError(f"of {printable(url.path)}, {fault}")
    return body


def verified(token: bytes, keys: bytes, document: HealthDocument, key_id: str | None) -> str:
    """The thumbprint of the key that signed a document.

    `kid` is ignored: a key set may give two keys the same id.

    Args:
        token: compact JWS.
        keys: set of JSON Web Keys, among which its key must be.
        document: the document that was fetched.
        key_id: thumbprint of the key that must have signed it; None for any of the set.

    Raises:
        UnusableError: the signature does not hold.
    """
    from joserfc import jws
    from joserfc.errors import JoseError

    for key, thumbprint in _keys_of(keys, key_id):
        try:
            signed = jws.deserialize_compact(token, key, algorithms=[ALGORITHM])
        except (JoseError, *_OF_DAMAGE):
            continue
        if signed.headers().get("typ") != TYPE:
            raise UnusableError(f"its signature is not of the type {TYPE}")
        if not _is_of(signed.payload, document):
            raise UnusableError(OTHER_DOCUMENT)
        return thumbprint
    raise UnusableError("its signature does not hold")


def _keys_of(keys: bytes, key_id: str | None) -> "list[tuple[OKPKey, str]]":
    """The keys of a set that may have signed, each with its thumbprint."""
    try:
        members = json.loads(keys)["keys"]
    except _OF_DAMAGE as error:
        raise UnusableError(f"{KEYS_PATH} holds no set of keys") from error
    if not isinstance(members, list):
        raise UnusableError(f"{KEYS_PATH} holds no set of keys")
    usable = [named for member in members if (named := _named_key(member)) is not None]
    allowed = [(key, thumbprint) for key, thumbprint in usable if key_id in (None, thumbprint)]
    if not allowed:
        fault = f"holds no key for {ALGORITHM}" if key_id is None else "does not hold the key that must have signed it"
        raise UnusableError(f"{KEYS_PATH} {fault}")
    return allowed[:MOST_KEYS]


def _named_key(member: object) -> "tuple[OKPKey, str] | None":
    """A member of a set of keys with its thumbprint; None of one to ignore (RFC 7517, section 5)."""
    from joserfc.errors import JoseError
    from joserfc.jwk import OKPKey

    if not isinstance(member, dict) or (member.get("kty"), member.get("crv")) != ("OKP", ALGORITHM):
        return None
    try:
        key = OKPKey.import_key(member)
        return key, key.thumbprint()
    except (JoseError, *_OF_DAMAGE):
        return None


def _is_of(payload: bytes, document: HealthDocument) -> bool:
    try:
        return parse_document(payload) == document
    except InvalidDocumentError:
        return False
