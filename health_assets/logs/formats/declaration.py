"""Declarations of log formats: how a file is recognized, where its records are, and what becomes of each.

What belongs here: reading and checking a declaration, which is YAML. What does not: applying one to a record
(`declared_records`) and to a file (`declared`). How to write one: docs/add-a-log-format.md.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from health_assets.core.formatting import nearest
from health_assets.core.yaml_files import entries, mapping, read_yaml, validated
from health_assets.logs.formats.expressions import Evaluated, compiled, needs_context
from health_assets.logs.formats.foreign_lines import UnusableRecordError, dumped
from health_assets.schema.log_fields import Choice, FreeText, LogField, Name, ShortText, Time
from health_assets.schema.records import LINE_TYPES

SPAN, EXECUTION, CANCELLATION = "span", "execution", "cancellation"
CANCELLED = "cancelled"
"""The status of executions that become cancellations."""
CALLS = ("model_call", "tool_call")
SPAN_FIELDS: dict[str, LogField] = {
    field.name: field
    for field in (
        Name(name="trace_id", is_required=True), Name(name="span_id", is_required=True), Name(name="parent_span_id"),
        ShortText(name="name"), Time(name="started_at", is_required=True), Time(name="ended_at"),
        Choice(name="status", words=("success", "failure")), FreeText(name="error"),
    )
}  # fmt: skip
"""Fields of a span, which becomes a line of OTLP-JSON; the attributes are declared beside them."""
FIELDS = {name: {field.name: field for field in kind.fields} for name, kind in LINE_TYPES.items()} | {SPAN: SPAN_FIELDS}
"""By what a record becomes, the fields that it may have."""
_STATUS = FIELDS[EXECUTION]["status"]
assert isinstance(_STATUS, Choice)
FIELDS[EXECUTION]["status"] = replace(_STATUS, words=(*_STATUS.words, CANCELLED))
EVERY_RECORD = "*"

Expression = Annotated[str, Field(min_length=1)]
Listed = Callable[[str | None], dict[str, Any]]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _require_expressions(*expressions: str | None) -> None:
    for expression in expressions:
        if expression is not None:
            compiled(expression)


class Value(_Model):
    """The value of a field, from what an expression finds.

    Args:
        path: the expression.
        constant: the value itself, in place of one that is found.
        matching: a regular expression with one group; what that finds in a text is the value, in each text of a list.
        values: by value that is found, as JSON writes it and a text as it is, the value of the field; a record with any
            other is rejected.
        at_least: the least number that is a success; any lesser one is a failure.
        unless: an expression; where it finds anything, the value is a failure.
        prefix: what stands before a text that is found.
        factor: what a number that is found is multiplied by, as seconds by 1000 for milliseconds.
        plus: an expression that finds how much later than the time that is found it was, in seconds times `factor`.
        otherwise: the value where there is none else.
    """

    path: Expression | None = None
    constant: Any = None
    matching: str | None = None
    prefix: str | None = None
    values: dict[str, Any] | None = None
    at_least: float | None = None
    unless: Expression | None = None
    factor: float | None = None
    plus: Expression | None = None
    otherwise: "Value | None" = None

    @model_validator(mode="after")
    def _finds_something(self) -> "Value":
        if (self.path is None) == (self.constant is None):
            raise ValueError("give either a path or a constant")
        if not all(map(_is_plain, [self.constant, *(self.values or {}).values()])):
            raise ValueError("a constant or value is a text, a finite number, true or false; put a date into quotes")
        if self.matching is not None and _groups(self.matching) != 1:
            raise ValueError(f"{self.matching!r} must have one group, which finds the value")
        _require_expressions(*self.expressions)
        return self

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions."""
        own = tuple(found for found in (self.path, self.unless, self.plus) if found is not None)
        return own if self.otherwise is None else own + self.otherwise.expressions

    def may_be(self, word: str) -> bool:
        """Whether the declaration names this as a value."""
        is_named = word == self.constant or word in (self.values or {}).values()
        return is_named or (self.otherwise is not None and self.otherwise.may_be(word))

    @property
    def evaluate_path(self) -> Evaluated | None:
        """What finds the value."""
        return None if self.path is None else compiled(self.path)

    @property
    def evaluate_unless(self) -> Evaluated | None:
        """What finds why it is a failure."""
        return None if self.unless is None else compiled(self.unless)

    @property
    def evaluate_plus(self) -> Evaluated | None:
        """What finds how much later it was."""
        return None if self.plus is None else compiled(self.plus)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """What finds the value in a text."""
        return None if self.matching is None else re.compile(self.matching)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _groups(expression: str) -> int:
    try:
        return re.compile(expression).groups
    except re.error as error:
        raise ValueError(f"{expression!r} is no regular expression: {error}") from None


def _as_value(given: Any) -> Any:
    """A text is an expression; of a list each is for where those before it find nothing."""
    if given is None:
        raise ValueError("it is still undecided; give an expression")
    if isinstance(given, str):
        return {"path": given}
    if isinstance(given, list) and given:
        first, *others = map(_as_value, given)
        return {**first, "otherwise": _as_value(others)} if others and isinstance(first, dict) else first
    return given


Given = Annotated[Value, BeforeValidator(_as_value)]


class Condition(_Model):
    """Records that are counted and become nothing.

    Args:
        when: an expression that finds something in such a record.
        note: what it is called where it is counted.
    """

    when: Expression
    note: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_evaluated(self) -> "Condition":
        _require_expressions(self.when)
        return self

    @property
    def is_met(self) -> Evaluated:
        """What tells whether a record is one of these."""
        return compiled(self.when)


class Made(_Model):
    """A kind of record that each record of the file becomes.

    Args:
        type: a record type of the native format, or `span`.
        each: an expression that finds a list; each of its elements becomes one. Without it, the record does.
        when: an expression that must find something.
        fields: by field of that type, its value.
        attributes: of a span, by attribute, its value.
    """

    type: str
    each: Expression | None = None
    when: Expression | None = None
    fields: Annotated[dict[str, Given], Field(min_length=1)]
    attributes: dict[str, Given] = {}

    @field_validator("type")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in FIELDS:
            raise ValueError(f"must be one of {', '.join(FIELDS)}{nearest(value, FIELDS)}")
        return value

    @model_validator(mode="after")
    def _has_its_fields(self) -> "Made":
        known = FIELDS[self.type]
        if unknown := next((name for name in self.fields if name not in known), None):
            raise ValueError(f"{self.type} has no field {unknown}{nearest(unknown, known)}")
        if self.attributes and self.type != SPAN:
            raise ValueError(f"attributes are those of a {SPAN}, and {self.type} has none")
        _require_expressions(self.each, self.when)
        return self

    @property
    def expressions(self) -> list[str]:
        """The expressions."""
        own = [found for found in (self.each, self.when) if found is not None]
        values = (*self.fields.values(), *self.attributes.values())
        return own + [found for value in values for found in value.expressions]

    @property
    def types(self) -> list[str]:
        """The types of the records that it may become."""
        status = self.fields.get("status") if self.type == EXECUTION else None
        return [self.type, CANCELLATION] if status is not None and status.may_be(CANCELLED) else [self.type]

    @property
    def looks_around(self) -> bool:
        """Whether an expression looks at more than the element that it is about."""
        return any(map(needs_context, self.expressions))

    @property
    def elements(self) -> Evaluated | None:
        """What finds the elements that become one each."""
        return None if self.each is None else compiled(self.each)

    @property
    def is_met(self) -> Evaluated | None:
        """What tells whether anything is made."""
        return None if self.when is None else compiled(self.when)


class Recognition(_Model):
    """Signs of a file; all must be there.

    Args:
        fields: fields that the first record has, or the document that holds the records.
        record_fields: fields that the first of the document's records has.
        member: the list whose first element has `record_fields`, where that is not the list of the records.
        values: by expression, the values of which it finds one, as JSON writes it and a text as it is.
    """

    fields: list[str] = []
    record_fields: list[str] = []
    member: str | None = None
    values: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _can_be_evaluated(self) -> "Recognition":
        if not self.fields and not self.record_fields:
            raise ValueError("give fields or record_fields")
        _require_expressions(*self.values)
        return self

    def fits(self, members: dict[str, Any], listed: Listed) -> bool:
        """Whether an object that has these members is one of these.

        Args:
            members: its members, of which one that is not known whole is None.
            listed: finds those of the first element of a list that it has.
        """
        if not members.keys() >= set(self.fields):
            return False
        if self.record_fields and not listed(self.member).keys() >= set(self.record_fields):
            return False
        try:
            return all(as_text(compiled(path)(members)) in allowed for path, allowed in self.values.items())
        except UnusableRecordError:
            return False


def as_text(value: Any) -> str:
    """A value as the keys of a declaration write it: a text as it is, any other as JSON.

    Raises:
        UnusableRecordError: it is nested too deeply.
    """
    return value if isinstance(value, str) else dumped(value)


class Declaration(_Model):
    """A format, declared.

    Args:
        name: its name among people.
        recognize: the signs of a file, of which one must fit.
        records: the member of a document that lists its records; `*` where each member is one. By default a line, an
            element of a list or the whole document is a record.
        private: whether no text of it is stored, since it holds prompts, code or paths.
        private_text: of a private one, a regular expression of what its files have in their first KiB: one that has it
            and is not recognized, as it is half-written, is refused without its text.
        private_name: likewise, of what the names of its files have.
        file_time: whether a record without an end has the file's modification time, and no duration.
        skip: records that become nothing.
        make: what each other record becomes.
    """

    name: Annotated[str, Field(min_length=1)]
    recognize: Annotated[list[Recognition], Field(min_length=1)]
    records: Expression | None = None
    private: bool = False
    private_text: str | None = None
    private_name: str | None = None
    file_time: bool = False
    skip: list[Condition] = []
    make: Annotated[list[Made], Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_applied(self) -> "Declaration":
        has_several = any(made.type == EXECUTION and made.each is not None for made in self.make)
        if has_several and any(made.type in CALLS and "execution_id" not in made.fields for made in self.make):
            raise ValueError("a record becomes several executions, so its calls need an execution_id")
        for expression in (self.private_text, self.private_name):
            if expression is not None:
                _groups(expression)
        if self.private and any(made.type == SPAN for made in self.make):
            raise ValueError("a private format makes no spans, whose attributes are texts; make executions and calls")
        return self

    @property
    def is_about_the_document(self) -> bool:
        """Whether an expression looks at what the document holds besides its records."""
        return any("_document" in found for found in self._expressions)

    @property
    def looks_at_digest(self) -> bool:
        """Whether an expression looks at the digest of its record."""
        return any("_digest" in found for found in self._expressions)

    @property
    def _expressions(self) -> list[str]:
        return [*(one.when for one in self.skip), *(found for made in self.make for found in made.expressions)]

    def is_of(self, source_file: str, start: bytes) -> bool:
        """Whether a file of this name that begins so, and is not recognized, is one of this private format."""
        text, name = self.private_text, self.private_name
        return (text is not None and re.search(text.encode(), start) is not None) or (
            name is not None and re.search(name, source_file) is not None
        )

    @property
    def becomes(self) -> str:
        """The records that its files become, for people."""
        types = [name for made in self.make for name in made.types]
        return ", ".join(dict.fromkeys(f"{name.replace('_', ' ')}s" for name in types))

    def fits(self, members: dict[str, Any], listed_in: Callable[[str], dict[str, Any]]) -> bool:
        """Whether a file whose first object has these members is one of this format; arguments as of `Recognition`."""

        def listed(name: str | None) -> dict[str, Any]:
            found = name or self.records
            return listed_in(found) if found else {}

        return bool(members) and any(one.fits(members, listed) for one in self.recognize)


def load_declaration(path: Path) -> Declaration:
    """The declaration in a file.

    Raises:
        HealthAssetsError: it is missing or not YAML, or a key is unknown or its value impossible.
    """
    document = mapping(path, "the file", read_yaml(path, "format declaration"))
    parts = {
        "recognize": entries(path, "recognize", Recognition, document),
        "skip": entries(path, "skip", Condition, document),
        "make": entries(path, "make", Made, document),
    }
    return validated(path, "the format", Declaration, {**document, **parts})
