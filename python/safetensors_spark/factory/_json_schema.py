"""A JSON schema of configurations, with the parameters of operators and hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from safetensors_spark.factory._types import Types


class _Generator(GenerateJsonSchema):
    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        # A parameter that no file can have, such as a function.
        return {"not": {}}


def json_schema(model: type[BaseModel], places: Mapping[type[BaseModel], Types[Any]]) -> dict[str, Any]:
    """The schema of a model, in which the known classes of a kind replace other models."""
    known = {place: [types.find(name) for name in types.names()] for place, types in places.items()}
    models = [(one, "validation") for one in (model, *(one for some in known.values() for one in some))]
    references, found = models_json_schema(models, schema_generator=_Generator)  # type: ignore[arg-type]
    parts = found["$defs"]
    names = {one: reference["$ref"].rpartition("/")[2] for (one, _), reference in references.items()}
    for place, kinds in known.items():
        for kind in kinds:
            part = parts[names[kind]]
            part["properties"] = {"type": {"const": kind.type}} | part["properties"]
            part["required"] = ["type", *part.get("required", ())]
        parts[place.__name__] = {"oneOf": [{"$ref": f"#/$defs/{names[kind]}"} for kind in kinds]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": parts,
        "$ref": f"#/$defs/{names[model]}",
    }
