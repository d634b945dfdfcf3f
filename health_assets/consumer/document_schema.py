"""JSON Schema of a health document, generated from the consumer's model."""

import re
from inspect import cleandoc, getdoc
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from health_assets.consumer.document import NOT_NULL, Calibration, Decay, Health, HealthDocument

Schema = dict[str, Any]

NOT_SAID = (
    "Besides, a consumer refuses a document with a member that is given twice, a time that does not exist, or more "
    "than 64 levels of objects and lists. Unknown members are ignored."
)


class _Generator(GenerateJsonSchema):
    """Schemas without titles and defaults, which say nothing of a document."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """No field has a title."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """The schema of what has a default, without the default."""
        return self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """The schema of an object, whose names must all match where they must match something."""
        made = super().dict_schema(schema)
        return made | {"additionalProperties": False} if "patternProperties" in made else made


def document_schema() -> Schema:
    """The JSON Schema of a valid health document."""
    schema = HealthDocument.model_json_schema(schema_generator=_Generator)
    for model in (Health, Calibration, Decay):
        _describe(schema["$defs"][model.__name__], model)
    _describe(schema, HealthDocument)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": "urn:health-assets:health-document",
        **schema,
        "title": "A health document as draft-liang-agent-health-state-00 has it",
        "description": f"{schema['description']} {NOT_SAID}",
    }


def _describe(schema: Schema, model: type[BaseModel]) -> None:
    """Put the words of the model's docstring where they belong, and leave null out where it is refused."""
    text = cleandoc(getdoc(model) or "")
    schema.pop("title", None)
    schema["description"] = text.partition("\n")[0]
    meanings = dict(re.findall(r"^ +(\w+): (.+)$", text.partition("Attributes:")[2], re.M))
    for name, member in schema["properties"].items():
        if NOT_NULL in model.model_fields[name].metadata:
            [allowed] = [option for option in member.pop("anyOf") if option != {"type": "null"}]
            member.update(allowed)
        schema["properties"][name] = {"description": meanings[name]} | member
