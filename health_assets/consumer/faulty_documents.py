"""Reading an answer that may not be a valid health document: what of it can be used, and what is wrong with it.

What a valid document is stands in `document`.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from health_assets.consumer.document import (
    MOST_DEPTH,
    STATUSES,
    Calibration,
    Decay,
    Health,
    HealthDocument,
    InvalidDocumentError,
    ReadableDocument,
    Status,
    first_of,
    is_deeper,
    is_namespaced,
    parse_document,
)
from health_assets.core.terminal import printable

PARTS: dict[str, type[BaseModel]] = {"health": Health, "calibration": Calibration, "decay": Decay}
MEMBERS = {
    "": tuple(HealthDocument.model_fields),
    **{name: tuple(part.model_fields) for name, part in PARTS.items()},
}
"""The members that the draft knows, by the object that they stand in; the document itself is the empty name."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The contents of an answer.

    Args:
        document: the document, where it is valid.
        readable: its valid members, where its status can be read.
        problems: faults, as `InvalidDocumentError` names them.
        unknown_members: members that the draft does not know, each with the member that it may stand for.
    """

    document: HealthDocument | None
    readable: ReadableDocument | None
    problems: tuple[str, ...]
    unknown_members: tuple[str, ...]


def read_document(body: bytes) -> Reading:
    """Read an answer; no content raises."""
    document: HealthDocument | None = None
    problems: tuple[str, ...] = ()
    try:
        document = parse_document(body)
    except InvalidDocumentError as error:
        problems = error.problems
    content = _content(body)
    return Reading(
        document=document,
        readable=document or _readable(content),
        problems=problems,
        unknown_members=tuple(first_of(list(_unknown_members(content)))),
    )


def _content(body: bytes) -> dict[str, Any]:
    """The members of a document, without those that nobody can read; none where it is no JSON object.

    Numbers that JSON does not know, or that Python does not read, are null.
    """
    try:
        content = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_given_once,
            parse_float=lambda digits: number if math.isfinite(number := float(digits)) else None,
            parse_int=_whole_number,
            parse_constant=lambda _: None,
        )
    except (ValueError, RecursionError):  # not UTF-8, or not JSON
        return {}
    members = content.items() if isinstance(content, dict) else ()
    return {name: member for name, member in members if not is_deeper(member, MOST_DEPTH - 1)}


def _given_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without the names that it has twice: which of two equal ones counts is nothing to guess about."""
    times = Counter(name for name, _ in pairs)
    return {name: value for name, value in pairs if times[name] == 1}


def _whole_number(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python reads
        return None


def _readable(content: dict[str, Any]) -> ReadableDocument | None:
    """The document without its faulty members; None where its status is among them."""
    content = deepcopy(content)
    health = content.get("health")
    if not isinstance(health, dict) or (status := _status(health.get("status"))) is None:
        return None
    health["status"] = status
    if isinstance(extensions := content.get("extensions"), dict):
        # by the keys themselves: pydantic cannot name one that is no valid Unicode
        content["extensions"] = {key: value for key, value in extensions.items() if is_namespaced(key)}
    try:
        return ReadableDocument.model_validate(content)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _remove(content, detail["loc"])
    try:
        return ReadableDocument.model_validate(content)
    except ValidationError:  # a path that leads to no member
        return ReadableDocument(health=Health(status=status))


def _status(value: Any) -> Status | None:
    """The status that a text names, also in other letters."""
    name = value.strip().lower() if isinstance(value, str) else None
    return next((status for status in STATUSES if status == name), None)


def _remove(content: dict[str, Any], path: Sequence[int | str]) -> None:
    *parts, last = path
    for part in parts:
        content = content.get(str(part), {})
    content.pop(str(last), None)


def _unknown_members(content: dict[str, Any]) -> Iterator[str]:
    for part, known in MEMBERS.items():
        members = content.get(part) if part else content
        for name in members if isinstance(members, dict) else ():
            if name not in known:
                yield f"{_path(part, printable(name))}: is no member of the draft{_hint(part, name)}"


def _hint(part: str, name: str) -> str:
    """The member that a name may stand for: one that is spelled alike, else the same of another object."""
    paths = {_path(place, member): _letters(member) for place, members in MEMBERS.items() for member in members}
    own = {path: letters for path, letters in paths.items() if path == _path(part, path.rpartition(".")[2])}
    for places, likeness in ((own, 1.0), (paths, 1.0), (own, 0.8)):
        if found := get_close_matches(_letters(name), places.values(), 1, likeness):
            path = next(path for path, letters in places.items() if letters == found[0])
            return f"; {path} is"
    return "; a member of your own belongs in extensions, with a namespace"


def _path(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
