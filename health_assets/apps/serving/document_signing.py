"""Signatures of health documents: each at an address beside its document, as a compact JWS of exactly its bytes.

The document itself is as the draft has it. The signature is Ed25519, which gives the same bytes for the same document.
"""

import json
from pathlib import Path

from health_assets.apps.serving.answers import Answer, momentary
from health_assets.core.errors import HealthAssetsError
from health_assets.core.signature_names import ALGORITHM, TYPE

NO_LIBRARY = "HEALTH_SIGNING_KEY needs another package: pip install 'health-assets[signing]'"
JOSE, KEY_SET = b"application/jose", b"application/jwk-set+json"
OF_THE_BODY = frozenset({b"content-type", b"content-length", b"x-content-type-options", b"etag", b"cache-control"})
"""Headers that are a document's own, not its signature's."""


class DocumentSigner:
    """Signs health documents.

    Args:
        path: private key in PEM.

    Raises:
        HealthAssetsError: it is no unencrypted key for Ed25519, or the package is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from joserfc import jws
            from joserfc.errors import JoseError
            from joserfc.jwk import OKPKey
        except ModuleNotFoundError as error:
            raise HealthAssetsError(NO_LIBRARY) from error
        try:
            key = OKPKey.import_key(path.read_bytes())
            public = key.as_dict(private=False)
            is_usable = key.is_private and public["crv"] == ALGORITHM
        except OSError as error:
            raise HealthAssetsError(f"HEALTH_SIGNING_KEY: cannot read {path}: {error.strerror}") from error
        except (JoseError, ValueError, TypeError, KeyError):  # TypeError: it is encrypted
            is_usable = False
        if not is_usable:
            raise HealthAssetsError(f"HEALTH_SIGNING_KEY: {path} is no unencrypted private key for Ed25519 in PEM")
        self._jws, self._key = jws, key
        self._header = {"alg": ALGORITHM, "typ": TYPE, "kid": key.thumbprint()}
        own = {**public, "kid": key.thumbprint(), "use": "sig", "alg": ALGORITHM}
        self._key_set = json.dumps({"keys": [own]}).encode()

    def signed(self, document: Answer) -> Answer:
        """The signature of the document in an answer; an answer that holds none is given as it is."""
        if document.status != 200:
            return document
        token = self._jws.serialize_compact(self._header, document.body, self._key, algorithms=[ALGORITHM])
        made = momentary(token.encode(), JOSE)
        made.headers.extend(header for header in document.headers if header[0] not in OF_THE_BODY)
        return made

    def keys(self) -> Answer:
        """The public key, as a set of JSON Web Keys."""
        return momentary(self._key_set, KEY_SET)
