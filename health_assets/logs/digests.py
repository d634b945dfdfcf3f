"""Digests of contents: arguments of tools, their results and answers of models, to tell repeated ones.

A content is never stored. A digest is salted with a value of its warehouse, so that guesses of a content cannot be
checked without it; what spaces, letters' case and ids of a call say makes no difference.
"""

SALT = "digest_salt"
"""The variable of the DuckDB that parses; digests are null where it is not set."""
DIGITS = 16
MOST_CHARACTERS = 1 << 16
"""Of a longer content the beginning and the length count."""

_MASKED = (
    "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",  # UUID
    "(call|toolu|tooluse|chatcmpl|msg|resp|run|fc|adk)[-_][a-z0-9]*[0-9][a-z0-9_-]{3,}",  # ids of calls and answers
    "[0-9]{4}-[0-9]{2}-[0-9]{2}t?[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(z|[+-][0-9]{2}:?[0-9]{2})?",  # ISO 8601
    "\\b1[5-9][0-9]{8}([0-9]{3})?\\b",  # epoch seconds and milliseconds, of 2017 to 2033
)


def digest(content: str, *, masks_ids: bool) -> str:
    """SQL for the digest of a content, `DIGITS` hexadecimal digits; null where the content is null.

    Args:
        content: SQL for the content, a text.
        masks_ids: whether UUIDs, ids of calls and times in it make no difference, either.
    """
    compact = f"regexp_replace(lower(left({content}, {MOST_CHARACTERS})), '\\s+', '', 'g')"
    if masks_ids:
        compact = f"regexp_replace({compact}, '{'|'.join(_MASKED)}', '#', 'g')"
    length = f"CASE WHEN length({content}) > {MOST_CHARACTERS} THEN length({content})::VARCHAR ELSE '' END"
    salted = f"getvariable('{SALT}') || {compact} || {length}"
    return f"CASE WHEN {content} IS NOT NULL THEN left(sha256({salted}), {DIGITS}) END"
