"""Names of signed health documents, for the server that signs and the consumer that verifies."""

ALGORITHM = "Ed25519"
TYPE = "agent-health+jws"
SUFFIX = ".jws"
"""Of the address of a signature, behind that of its document."""
KEYS_PATH = "/.well-known/jwks.json"
