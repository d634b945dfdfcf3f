"""Digests of contents: inputs of runs, arguments of tools, their results and answers of models, to tell repeated ones.

Ids of users are digested, too, unless a setting keeps them. A content is never stored. A digest is salted with a value
of its warehouse, so that guesses of a content cannot be checked without it; what spaces, letters' case and ids of a
call say makes no difference.
"""

from health_assets.logs.limits import is_name

SALT = "digest_salt"
"""The variable of the DuckDB that parses; digests are null where it is not set."""
PLAIN_USERS = "plain_user_ids"
"""The variable that says whether ids of users are kept as they are."""
DIGITS = 16
MOST_CHARACTERS = 1 << 16
"""Of a longer content the beginning and the length count."""

_MASKED = (
    "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",  # UUID
    "(call|toolu|tooluse|chatcmpl|msg|resp|run|fc|adk)[-_][a-z0-9]*[0-9][a-z0-9_-]{3,}",  # ids of calls and answers
    "[0-9]{4}-[0-9]{2}-[0-9]{2}t?[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(z|[+-][0-9]{2}:?[0-9]{2})?",  # ISO 8601
    "\\b1[5-9][0-9]{8}([0-9]{3})?\\b",  # epoch seconds and milliseconds, of 2017 to 2033
)

_SPACE = "(\\s|\\\\[nrt])+"
"""Also within texts of JSON, where a line break is escaped."""
_MASKED_IN_TASKS = (
    _MASKED[0],
    "[0-9]{4}-[0-9]{2}-[0-9]{2}([t ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(z|utc|[+-][0-9]{2}:?[0-9]{2}))?)?",
    "\\b0x[0-9a-f]+\\b",  # addresses in memory
    "\\b[0-9a-f]{16,}\\b",  # ids of traces and spans
    "[0-9]{6,}([.,][0-9]+)?",
)
_HIDDEN = "[^\\pL\\pN]*(redacted|null)[^\\pL\\pN]*"
"""What instrumentors write in place of an input that they hide, or do not have."""
_MOST_OF_A_MARK = 40
"""Characters of such a text."""


def digest(content: str, *, masks_ids: bool) -> str:
    """SQL for the digest of a content, `DIGITS` hexadecimal digits; null where the content is null.

    Args:
        content: SQL for the content, a text.
        masks_ids: whether UUIDs, ids of calls and times in it make no difference, either.
    """
    compact = f"regexp_replace(lower(left({content}, {MOST_CHARACTERS})), '\\s+', '', 'g')"
    if masks_ids:
        compact = f"regexp_replace({compact}, '{'|'.join(_MASKED)}', '#', 'g')"
    return f"CASE WHEN {content} IS NOT NULL THEN {_salted(content, compact)} END"


def task_digest(content: str) -> str:
    """SQL for the digest of what a run was asked; null where nothing was, or where its text was redacted.

    Runs of one task differ in the time and the ids that they are given, so these make no difference.

    Args:
        content: SQL for the content, a text.
    """
    spaced = f"trim(regexp_replace(lower(left({content}, {MOST_CHARACTERS})), '{_SPACE}', ' ', 'g'))"
    masked = f"regexp_replace({spaced}, '{'|'.join(_MASKED_IN_TASKS)}', '#', 'g')"
    is_hidden = f"length({content}) <= {_MOST_OF_A_MARK} AND regexp_full_match(lower({content}), '{_HIDDEN}')"
    says_something = f"regexp_matches({content}, '[\\pL\\pN]') AND NOT ({is_hidden})"
    return f"CASE WHEN {says_something} THEN {_salted(content, masked)} END"


def user(user_id: str) -> str:
    """SQL for what is kept of a user's id: its digest, or where ids are kept the id, unless it is longer than any id.

    Args:
        user_id: SQL for the id, a text.
    """
    is_kept = f"coalesce(getvariable('{PLAIN_USERS}'), false) AND {is_name(user_id)}"
    digest_of_id = f"left(sha256(getvariable('{SALT}') || 'user' || {user_id}), {DIGITS})"
    return f"CASE WHEN {is_kept} THEN {user_id} WHEN {user_id} <> '' THEN {digest_of_id} END"


def _salted(content: str, normalized: str) -> str:
    length = f"CASE WHEN length({content}) > {MOST_CHARACTERS} THEN length({content})::VARCHAR ELSE '' END"
    return f"left(sha256(getvariable('{SALT}') || {normalized} || {length}), {DIGITS})"
