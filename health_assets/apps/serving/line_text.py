"""Texts of raw log lines for people: JSON with a line for each member, and no secrets.

What belongs here: laying out, and leaving secrets out of what is laid out. What does not: finding a line (`log_lines`),
and what a secret is (`core.redaction`).

Secrets are looked for in what is shown: JSON may write any character as an escape, which hides it from patterns.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from health_assets.core.redaction import Redaction

MOST_LAID_OUT_CHARACTERS = 1 << 20
"""Longest line that is laid out; a longer one is shown as it is written."""
MOST_LAID_OUT_DOCUMENTS = 10_000
"""Most documents of a line that are laid out."""
_BLANKS = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)")
_SPACE = re.compile(r"\s+")
_decode = json.JSONDecoder().raw_decode


def shown_text(text: str, redaction: Redaction) -> str:
    """A line for people, without secrets."""
    try:
        return _laid_out(_documents(text), redaction)
    except (ValueError, RecursionError):  # not JSON, or a number or a nesting beyond what Python takes
        return _redacted([_without_escapes(text)], redaction)[0]


def _documents(text: str) -> list[Any]:
    """The JSON objects and lists that the text holds.

    Raises:
        ValueError: it holds something else, or too much.
        RecursionError: they are nested too deeply.
    """
    if len(text) > MOST_LAID_OUT_CHARACTERS:
        raise ValueError("the line is too long to be laid out")
    documents: list[Any] = []
    place = _end_of_blanks(text, 0)
    while place < len(text):
        if len(documents) == MOST_LAID_OUT_DOCUMENTS:
            raise ValueError("the line holds too many documents to be laid out")
        if text[place] not in "{[":
            raise ValueError("the line holds something besides JSON objects and lists")
        document, end = _decode(text, place)
        documents.append(document)
        place = _end_of_blanks(text, end)
    return documents


def _end_of_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def _laid_out(documents: list[Any], redaction: Redaction) -> str:
    """The documents without secrets: none within a text, nor between members.

    Some patterns look for a secret within one line. Where they find more in the documents on one line than in those
    that are laid out, they are shown on one line.
    """
    texts: list[str] = []
    _collect(documents, texts)
    kept = _replaced(documents, iter(_redacted(texts, redaction)))
    laid_out = "\n".join(json.dumps(document, indent=2, ensure_ascii=False) for document in kept)
    on_one_line = " ".join(json.dumps(document, ensure_ascii=False) for document in kept)
    laid_out, on_one_line = _redacted([laid_out, on_one_line], redaction)
    is_same = _SPACE.sub("", laid_out) == _SPACE.sub("", on_one_line)
    return laid_out if is_same else on_one_line


def _collect(value: Any, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _collect(inner, texts)


def _replaced(value: Any, texts: Iterator[str]) -> Any:
    """The value with other texts, in the order of `_collect`."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, dict):
        return {name: _replaced(inner, texts) for name, inner in value.items()}
    return [_replaced(inner, texts) for inner in value] if isinstance(value, list) else value


def _redacted(texts: list[str], redaction: Redaction) -> list[str]:
    if not texts:
        return []
    # halves of surrogate pairs, which JSON may have as escapes, are no UTF-8
    kept, _ = redaction.of_texts([text.encode(errors="backslashreplace").decode() for text in texts])
    return kept


def _without_escapes(text: str) -> str:
    """The text with characters for JSON's escapes of them, but for those that JSON must escape."""
    return _ESCAPE.sub(lambda found: _character(found[0], found[1]), text)


def _character(escape: str, code: str | None) -> str:
    character = chr(int(code, 16)) if code else ""
    return character if character.isprintable() and character not in ('"', "\\", "") else escape
