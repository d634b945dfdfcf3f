"""What is taken out of a recording before it is checked in, and the check that nothing is left.

Ids, names, kinds, attributes, statuses, events, their order and types stay as they were written.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

BEGINS_AT = datetime(2026, 6, 7, 13, tzinfo=UTC)
"""Every recording is moved in time, as a whole, so that its first span begins here."""
PORT = 8000
STACKTRACE = "Traceback (most recent call last): not recorded"
TRACEBACK = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)
"""To the end of the text, wherever instrumentors put it."""
FRAMES_OF_NODE = re.compile(r"\n\s+at .*")
TIMES = ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano")
OF_THE_MACHINE = ("process.", "host.", "os.", "container.")
LONGEST_TEXT, LONGEST_ANSWER = 64, 500
"""In characters: some instrumentors write the whole conversation on every span."""
KEPT_WHOLE = (
    "metadata", "llm.invocation_parameters", "exception.message", "exception.stacktrace", "gen_ai.output.messages",
)  # fmt: skip
"""Attributes that tell more than contents, and the answers of models, which are to differ where they did."""
SAYS_ERROR = '"status": "error"'
"""A tool's answer that has this in it tells that the tool failed, and stays whole."""
LEFT_OVER = re.compile(r"/(?:home|root|tmp|usr|opt|work|Users|var)/|site-packages|\.py\b|sk-[A-Za-z0-9]")

Json = dict[str, Any]


def scrubbed(lines: Iterable[str]) -> list[str]:
    """Take out of these lines of OTLP-JSON what tells of the machine, and move them in time.

    Raises:
        ValueError: A path, a file's name or a key is left.
    """
    requests: list[Json] = [json.loads(line) for line in lines if line.strip()]
    if not requests:
        raise ValueError("no span was recorded")
    begun = min(int(span["startTimeUnixNano"]) for request in requests for span in _spans(request))
    moved = int(BEGINS_AT.timestamp()) * 1_000_000_000 - begun
    made = []
    for request in requests:
        for resource_spans in request["resourceSpans"]:
            resource = resource_spans.get("resource", {})
            resource["attributes"] = [
                one for one in resource.get("attributes", []) if not one["key"].startswith(OF_THE_MACHINE)
            ]
        line = json.dumps(_changed(request, moved), ensure_ascii=False, separators=(",", ":"))
        if left := LEFT_OVER.search(line):
            raise ValueError(f"a recording tells of the machine: {line[max(0, left.start() - 80) : left.end() + 80]}")
        made.append(line)
    return made


def _spans(request: Json) -> Iterator[Json]:
    for resource_spans in request["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            yield from scope_spans["spans"]


def _changed(value: Any, moved: int) -> Any:
    if isinstance(value, list):
        return [_changed(one, moved) for one in value]
    if isinstance(value, str):
        text = TRACEBACK.sub(_without_frames, FRAMES_OF_NODE.sub("", value))
        return re.sub(r"(127\.0\.0\.1|localhost):\d+", rf"\g<1>:{PORT}", text)
    if not isinstance(value, dict):
        return value
    changed = {name: _changed(one, moved) for name, one in value.items()}
    for name in TIMES:
        if name in changed:
            changed[name] = type(changed[name])(int(changed[name]) + moved)
    if changed.get("key") in ("server.port", "net.peer.port"):
        changed["value"] = {name: type(one)(PORT) for name, one in changed["value"].items()}
    elif "key" in changed and changed["key"] not in KEPT_WHOLE:
        changed["value"] = _shortened(changed["value"])
    return changed


def _shortened(value: Any) -> Any:
    """Cut the long texts of an attribute: prompts, answers, what a tool is for."""
    match value:
        case {"stringValue": str(text)} if len(text) > (LONGEST_ANSWER if SAYS_ERROR in text else LONGEST_TEXT):
            return {"stringValue": f"{text[:LONGEST_TEXT]}…"}
        case {"arrayValue": {"values": list(values)}}:
            return {"arrayValue": {"values": [_shortened(one) for one in values]}}
    return value


def _without_frames(traceback: re.Match[str]) -> str:
    """Keep the last line of a traceback, which names the error."""
    lines = [line for line in traceback[0].splitlines() if line.strip()]
    return f"{STACKTRACE}\n{lines[-1]}\n" if len(lines) > 1 else STACKTRACE
