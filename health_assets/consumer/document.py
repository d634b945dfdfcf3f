"""The health document as a consumer takes it (source 3, sections 4.2 to 4.5): what must hold, and what is wrong if not.

A consumer is strict about what it understands and deaf to the rest: a field that it knows must have the type and range
that the draft gives it, a field that it does not know is ignored. Only `schema_version`, `agent_id`, `timestamp` and
`health.status` must be there: what an agent does not know it leaves out, and an agent of a person may leave out all of
`calibration` and `decay` (section 8). `null` is a value for `days_since_model_change` alone.
"""

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError

from health_assets.core.terminal import printable

Status = Literal["healthy", "degraded", "unhealthy", "unknown"]
Trend = Literal["stable", "declining", "improving"]
STATUSES: tuple[Status, ...] = get_args(Status)

LEAST_WINDOW_S = 300
PROBLEMS_NAMED = 20
VALUE_SHOWN = 60
MOST_DEPTH = 64
"""Objects and lists in each other; the draft's own fields need three."""

# the recommended pattern of semver.org, without named groups
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_TIMESTAMP = re.compile(r"[\dW-]+[Tt][\d:.,]+([Zz]|[+-][\d:]+)?", re.ASCII)
_NAMESPACED = re.compile(r"[^\s.]+(?:\.[^\s.]+)+")


class InvalidDocumentError(ValueError):
    """An answer is no valid health document.

    Args:
        problems: faults, one sentence a field, `field: its fault`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def _version(value: str) -> str:
    match = _SEMVER.fullmatch(value)
    if not match:
        raise PydanticCustomError("version", "must be a semantic version like 0.1.0")
    if match.groups() != ("0", "1"):
        raise PydanticCustomError("version", "must be a version 0.1.x, which is all that this consumer understands")
    return value


def _moment(value: Any) -> datetime:
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise PydanticCustomError("moment", "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z")
    if not match[1]:
        raise PydanticCustomError("moment", "must have a time zone")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError("moment", "must be an ISO 8601 timestamp of a time that exists") from error


def _whole(value: Any) -> Any:
    """JSON does not tell 12.0 from 12."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_namespaced(key: str) -> bool:
    """Whether a key of `extensions` has a namespace."""
    return _NAMESPACED.fullmatch(key) is not None


def _namespaced(key: str) -> str:
    if not is_namespaced(key):
        raise PydanticCustomError("namespace", "must have a namespace prefix, like com.example.feature")
    return key


def _not_null(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError("null", "must not be null")
    return value


NOT_NULL = BeforeValidator(_not_null)
"""For fields that may be left out, which is None here, but not be null in the document."""

Text = Annotated[str, Field(min_length=1)]
Version = Annotated[
    str, AfterValidator(_version), WithJsonSchema({"type": "string", "pattern": r"^0\.1\.\d+([+-].+)?$"})
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "pattern": r"^[\dW-]+[Tt][\d:.,]+([Zz]|[+-][\d:]+)$"}),
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
WindowLength = Annotated[float, Field(ge=LEAST_WINDOW_S, allow_inf_nan=False)]
Count = Annotated[
    int,
    BeforeValidator(_whole),
    Field(ge=0, lt=2**63),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}),
]
ExtensionName = Annotated[
    str, AfterValidator(_namespaced), WithJsonSchema({"type": "string", "pattern": f"^{_NAMESPACED.pattern}$"})
]


class _Part(BaseModel):
    """A part of the document; fields that we do not know are ignored, fields that are left out are None."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Health(_Part):
    """Operational status (section 4.3).

    Attributes:
        status: the agent's word on itself.
        last_healthy_at: when its status was last healthy, UTC.
        uptime_seconds: time since its process was last restarted.
    """

    status: Status
    last_healthy_at: Annotated[Moment | None, NOT_NULL] = None
    uptime_seconds: Annotated[NotNegative | None, NOT_NULL] = None


class Calibration(_Part):
    """Metrics of response quality over the measurement window (section 4.4).

    Attributes:
        response_ratio: share of requests with a valid response, 0 to 1.
        error_ratio: share of requests with an error, 0 to 1.
        latency_p50_ms: median response latency.
        latency_p99_ms: 99th percentile of response latency.
        measurement_window_seconds: length of the window, 5 minutes at least.
        sample_count: requests sampled; below 10 the rest is of low confidence.
    """

    response_ratio: Annotated[Share | None, NOT_NULL] = None
    error_ratio: Annotated[Share | None, NOT_NULL] = None
    latency_p50_ms: Annotated[NotNegative | None, NOT_NULL] = None
    latency_p99_ms: Annotated[NotNegative | None, NOT_NULL] = None
    measurement_window_seconds: Annotated[WindowLength | None, NOT_NULL] = None
    sample_count: Annotated[Count | None, NOT_NULL] = None


class Decay(_Part):
    """Signals of where quality is going (section 4.5).

    Attributes:
        calibration_trend: the response ratio against that of the window before.
        days_since_model_change: days since the underlying model changed; None where that is not known.
        last_capability_update: when the agent last declared its capabilities, UTC.
    """

    calibration_trend: Annotated[Trend | None, NOT_NULL] = None
    days_since_model_change: NotNegative | None = None
    last_capability_update: Annotated[Moment | None, NOT_NULL] = None


class ReadableDocument(_Part):
    """The members of a health document that are as they must be; of the others `health.status` alone is needed."""

    schema_version: str | None = None
    agent_id: Text | None = None
    timestamp: Moment | None = None
    health: Health
    calibration: Calibration = Calibration()
    decay: Decay = Decay()
    extensions: dict[ExtensionName, Any] = {}


class HealthDocument(ReadableDocument):
    """A valid health document (section 4.2).

    Attributes:
        schema_version: semantic version of the schema, 0.1.x.
        agent_id: stable identifier of the agent.
        timestamp: when the state was computed, UTC.
        health: operational status.
        calibration: response quality.
        decay: where quality is going.
        extensions: whatever else the agent says, by namespaced key.
    """

    schema_version: Version
    agent_id: Text
    timestamp: Moment


def parse_document(body: bytes) -> HealthDocument:
    """Read a health document.

    Args:
        body: JSON in UTF-8.

    Raises:
        InvalidDocumentError: it is not JSON or nested too deeply, or a field breaks a rule; every such field is named,
            up to 20.
    """
    content = _parse_json(body)
    if is_deeper(content, MOST_DEPTH):
        raise InvalidDocumentError([f"the document: is nested too deeply, more than {MOST_DEPTH} levels"])
    if not isinstance(content, dict):
        raise InvalidDocumentError([f"the document: must be an object, not {_shown(content)}"])
    try:
        return HealthDocument.model_validate(content)
    except ValidationError as error:
        raise InvalidDocumentError(
            first_of([_sentence(detail) for detail in error.errors(include_url=False)])
        ) from error


def first_of(problems: Sequence[str]) -> list[str]:
    """The first 20 problems, and how many more there are."""
    named = list(problems[:PROBLEMS_NAMED])
    if len(problems) > len(named):
        named.append(f"and {len(problems) - len(named)} more problems")
    return named


def _parse_json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocumentError(["the document: is not UTF-8"]) from error
    try:
        return json.loads(text, object_pairs_hook=_unique_names, parse_float=_finite, parse_constant=_no_constant)
    except InvalidDocumentError:
        raise
    except RecursionError as error:
        raise InvalidDocumentError(["the document: is nested too deeply"]) from error
    except ValueError as error:  # also a number of more digits than Python reads
        reason = getattr(error, "msg", "a number has too many digits")
        raise InvalidDocumentError([f"the document: is not valid JSON ({reason[0].lower()}{reason[1:]})"]) from error


def is_deeper(content: Any, levels: int) -> bool:
    """Whether anything is nested deeper than so many levels: what reads it later may not survive it."""
    level = [content]
    for _ in range(levels + 1):
        level = [
            part for whole in level if isinstance(whole, dict | list)
            for part in (whole.values() if isinstance(whole, dict) else whole)
        ]  # fmt: skip
    return bool(level)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; which of two equal keys counts is nothing to guess about."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidDocumentError([f"{printable(twice)}: is given twice"])
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidDocumentError([f"the document: {printable(digits, VALUE_SHOWN)} is more than a double can hold"])
    return number


def _no_constant(name: str) -> Any:
    raise InvalidDocumentError([f"the document: is not valid JSON ({name} is no JSON number)"])


# -- problems in words -------------------------------------------------------------------------------------------------

_EXPECTED = {
    "string_type": "must be a string",
    "string_unicode": "must be a string of Unicode characters",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "less_than": "must be less than {lt:g}",
}


def _sentence(detail: ErrorDetails) -> str:
    """`field: what is wrong with it`."""
    field = ".".join(printable(str(part)) for part in detail["loc"] if part != "[key]")
    if detail["type"] == "missing":
        return f"{field}: is missing"
    if detail["input"] is None:
        return f"{field}: must not be null"
    if detail["type"] == "string_too_short":
        return f"{field}: must not be empty"
    expected = _EXPECTED.get(detail["type"], detail["msg"]).format(**detail.get("ctx", {}))
    return f"{field}: {expected.replace(chr(39), '')}, not {_shown(detail['input'])}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return printable(json.dumps(value, ensure_ascii=False), VALUE_SHOWN)
