"""Bodies of requests as JSON schemas, so that machines can write and test them."""

from collections.abc import Mapping
from typing import Any

from caveat.serve.models import ServedModel
from caveat.serve.tensors import BYTES, TYPES

JsonSchema = dict[str, Any]


def parameters() -> dict[str, JsonSchema]:
    """What a request may ask for beside its rows; null is as if it were not there.

    Returns
    -------
    dict of str to dict
        Schemas by name.
    """
    draws = {"type": ["integer", "null"], "minimum": 2}
    seed = {"type": ["integer", "null"], "minimum": 0, "maximum": 2**32 - 1}
    return {
        "n_draws": draws | {"description": "Draws for each row."},
        "tolerance": _above_zero(10) | {"description": "Instead of n_draws."},
        "seed": seed | {"description": "Same seed and row, same numbers."},
        "level": {
            "type": ["number", "null"],
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "description": "Of intervals; 0.9.",
        },
        "budget_ms": _above_zero(600_000)
        | {"description": "As many draws as fit into so many milliseconds."},
    }


def rows_schema(models: Mapping[str, ServedModel]) -> JsonSchema:
    """Of rows by the names of their columns, or as lists of numbers.

    Parameters
    ----------
    models : mapping of str to ServedModel
        Of one of which the rows are.

    Returns
    -------
    dict
    """
    rows: list[JsonSchema] = []
    for model in models.values():
        if model.row_schema not in rows:
            rows.append(model.row_schema)
    items = rows[0] if len(rows) == 1 else {"anyOf": rows}
    own = {"rows": {"type": "array", "minItems": 1, "items": items}}
    return _object(own | parameters(), ["rows"])


def infer_schema() -> JsonSchema:
    """Of tensors, as the protocol has them.

    Returns
    -------
    dict
    """
    flag = {"type": "boolean"}
    size = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
    tensor = {
        "name": {"type": "string"},
        "shape": {"type": "array", "minItems": 1, "maxItems": 8, "items": size},
        "datatype": {"type": "string", "enum": [*TYPES, BYTES]},
        "data": _LIST,
        "parameters": _object({"binary_data_size": {"type": "integer"}}, []),
    }
    output = {
        "name": {"type": "string"},
        "parameters": _object({"binary_data": flag}, []),
    }
    needed = ["name", "shape", "datatype"]
    inputs = {"type": "array", "minItems": 1, "items": _object(tensor, needed)}
    asked = _object(parameters() | {"binary_data_output": flag}, [])
    return _object(
        {
            "id": {"type": "string", "maxLength": 1000},
            "inputs": inputs,
            "outputs": {"type": "array", "items": _object(output, ["name"])},
            "parameters": asked,
        },
        ["inputs"],
    )


def rows_body(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """For OpenAPI: rows, with those of the first model for an example.

    Parameters
    ----------
    models : mapping of str to ServedModel
        That are served.

    Returns
    -------
    dict
    """
    return _body(rows_schema(models), _example_rows(models))


def infer_body(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """For OpenAPI: tensors, with those of the first model for an example.

    Parameters
    ----------
    models : mapping of str to ServedModel
        That are served.

    Returns
    -------
    dict
    """
    row = (model := next(iter(models.values()))).example
    inputs = []
    for info in model.inputs:
        shape = [1, *info.shape[1:]]
        data = [row[info.name]] if isinstance(row, dict) else [row]
        own = {"name": info.name, "shape": shape, "datatype": info.datatype}
        inputs.append(own | {"data": data})
    example = {"inputs": inputs, "parameters": {"n_draws": 64}}
    return _body(infer_schema(), example)


def stream_body(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """For OpenAPI: either kind of request.

    Parameters
    ----------
    models : mapping of str to ServedModel
        That are served.

    Returns
    -------
    dict
    """
    rows = rows_schema(models)
    rows["properties"]["quantiles"] = {"type": "boolean"}
    return _body({"anyOf": [rows, infer_schema()]}, _example_rows(models))


def answer_contents() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """For OpenAPI: what the routes of inference answer, in the order of the bodies.

    Returns
    -------
    tuple of dict
        Contents by media type: of tensors, of rows, and of streams.
    """
    texts = {"type": "array", "items": {"type": "string"}}
    whole = {"type": "integer"}
    output = {
        "name": {"type": "string"},
        "datatype": {"type": "string"},
        "shape": {"type": "array", "items": whole},
        "data": {"type": "array"},
        "parameters": _object({"binary_data_size": whole}, []),
    }
    outputs = _object(output, ["name", "datatype", "shape"])
    tensors = {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "parameters": _object({"notes": {"type": "string"}}, ["notes"]),
        "outputs": {"type": "array", "items": outputs},
    }
    predictions = {"type": "array", "items": {"type": "object"}}
    rows = {"model": {"type": "string"}, "predictions": predictions, "notes": texts}
    infer = _object(tensors, ["model_name", "model_version", "outputs"])
    kinds = {"type": "string", "enum": ["estimate", "error"]}
    event = _object({"event": kinds, "data": {"type": "string"}}, ["event", "data"])
    return (
        {"application/json": {"schema": infer}, "application/octet-stream": {}},
        {"application/json": {"schema": _object(rows, list(rows))}},
        {"text/event-stream": {"schema": event}},
    )


def _example_rows(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    row = next(iter(models.values())).example
    return {"rows": [row], "n_draws": 64, "seed": 1}


def _body(schema: JsonSchema, example: dict[str, Any]) -> dict[str, Any]:
    content = {"schema": schema, "example": example}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _object(properties: dict[str, Any], required: list[str]) -> JsonSchema:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _above_zero(most: float) -> JsonSchema:
    return {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": most}


_LIST: JsonSchema = {
    "type": "array",
    "items": {"type": ["number", "string", "boolean", "null", "array"]},
}
