"""What is said of the routes: for OpenAPI, and as a page that needs nothing else."""

import json
from html import escape
from typing import Any

DESCRIPTION = """Predictions with their uncertainty. Parameters of all inference routes:
n_draws (draws for each row), tolerance (instead: draw until the Monte Carlo error is
this part of the spread), seed (same seed, same numbers), level (of intervals, 0.9),
budget_ms (as many draws as fit into so many milliseconds)."""

_WORDS = {
    400: "The request is wrong; error says where.",
    404: "There is no such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    503: "Too many requests wait; Retry-After says when to come back.",
}


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Refusals, for OpenAPI.

    Parameters
    ----------
    *statuses : int
        Of HTTP.

    Returns
    -------
    dict
    """
    schema = {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "string"}},
    }
    content = {"application/json": {"schema": schema}}
    return {s: {"description": _WORDS[s], "content": content} for s in statuses}


def name_models(described_by: dict[str, Any], names: list[str]) -> None:
    """Say in an OpenAPI which models there are.

    Parameters
    ----------
    described_by : dict
        OpenAPI, which is changed.
    names : list of str
        Of the models.
    """
    for methods in described_by["paths"].values():
        for own in methods.values():
            for parameter in own.get("parameters", ()):
                if parameter["name"] == "model":
                    parameter["schema"]["enum"] = names


def docs_page(described_by: dict[str, Any]) -> str:
    """A page of all routes with examples for curl, from their OpenAPI.

    Parameters
    ----------
    described_by : dict
        OpenAPI.

    Returns
    -------
    str
        HTML.
    """
    parts = [f"<h1>Caveat: routes</h1><p>{escape(described_by['info']['description'])}"]
    parts.append("<p>Also as <a href='/openapi.json'>OpenAPI</a>.")
    for path, methods in described_by["paths"].items():
        for method, own in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2>")
            parts.append(f"<p>{escape(own.get('description', ''))}</p>")
            content = own.get("requestBody", {}).get("content", {})
            example = content.get("application/json", {}).get("example")
            if example is not None:
                text = json.dumps(example)
                call = f"curl -s http://127.0.0.1:8080{path} -d '{text}'"
                parts.append(f"<pre>{escape(call)}</pre>")
            codes = ", ".join(str(code) for code in own.get("responses", {}))
            parts.append(f"<p class=codes>Answers: {escape(codes)}</p>")
    return _FRAME.replace("CONTENT", "\n".join(parts))


_FRAME = """<!doctype html><html lang="en"><meta charset="utf-8">
<title>Caveat: routes</title><link rel="icon" href="data:,">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;
padding:0 1em}pre{background:#f2f2f2;padding:.7em;overflow:auto;white-space:pre-wrap}
h2{font-size:1.1em}.codes{color:#555}</style>
CONTENT
</html>"""
