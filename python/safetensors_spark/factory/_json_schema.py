"""A JSON schema of configurations, with the parameters of operators."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from safetensors_spark.factory._registry import operator_class, operator_types


class _Generator(GenerateJsonSchema):
    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        # A parameter that no file can have, such as a function.
        return {"not": {}}


def json_schema(model: type[BaseModel], operator_model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model, with all operators that are known in the place of another model, which is within it."""
    operators = [operator_class(name) for name in operator_types()]
    models = [(one, "validation") for one in (model, *operators)]
    references, found = models_json_schema(models, schema_generator=_Generator)  # type: ignore[arg-type]
    parts = found["$defs"]
    names = {one: reference["$ref"].rpartition("/")[2] for (one, _), reference in references.items()}
    for operator in operators:
        part = parts[names[operator]]
        part["properties"] = {"type": {"const": operator.type}} | part["properties"]
        part["required"] = ["type", *part.get("required", ())]
    parts[operator_model.__name__] = {"oneOf": [{"$ref": f"#/$defs/{names[operator]}"} for operator in operators]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": parts,
        "$ref": f"#/$defs/{names[model]}",
    }
