"""Digests of values; which values a partition follows from does not belong here (`pipeline.fingerprints`)."""

import hashlib
import json


def digest_of(said: object) -> str:
    """A digest of values that JSON can write."""
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
