"""Digests of what some values say; which values a result follows from does not belong here (`pipeline.grounds`)."""

import hashlib
import json


def digest_of(said: object) -> str:
    """A digest of values that JSON can write."""
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
