"""What is said of bodies and what is taken is the same."""

import pytest

from caveat.serve.kinds import served
from caveat.serve.schemas import infer_body, infer_schema, rows_body, rows_schema
from tests.serve.running import ROW, ask

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

PARAMETERS = {
    "n_draws": ([2, 64], [1, 1.5, "8", True]),
    "tolerance": ([0.5, 10], [0, -1, 11, "x"]),
    "seed": ([0, 2**32 - 1], [-1, 2**32, 0.5]),
    "level": ([0.5, 0.99], [0, 1, "0.9"]),
    "budget_ms": ([20], [0, 600_001, []]),
}
CASES = [
    (name, value, is_good)
    for name, (good, bad) in PARAMETERS.items()
    for value, is_good in [*((v, True) for v in good), *((v, False) for v in bad)]
]


@pytest.fixture(scope="module")
def schema(served_models):
    return rows_schema({"prices": served(served_models["prices"])})


def fits(body, schema):
    return jsonschema.Draft202012Validator(schema).is_valid(body)


@pytest.mark.parametrize(("name", "value", "is_good"), CASES)
def test_a_parameter_fits_the_schema_if_it_is_taken(
    address, schema, name, value, is_good
):
    body = {"rows": [ROW], name: value}
    assert fits(body, schema) is is_good
    assert (ask(address, "prices", body).status_code == 200) is is_good


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"rows": []}, {"rows": ROW}, {"rows": [3]}),
        *({"rows": [ROW], "draws": 8}, {"rows": [{"size": 1}]}, {"rows": [[1, 2, 3]]}),
        {"rows": [ROW | {"size": True}]},
    ],
)
def test_bodies_that_do_not_fit_are_refused(address, schema, body):
    assert not fits(body, schema)
    assert ask(address, "prices", body).status_code == 400


@pytest.mark.parametrize("name", ["prices", "kinds", "matrix", "net"])
def test_examples_fit(served_models, name):
    models = {name: served(served_models[name])}
    pairs = (rows_body, rows_schema(models)), (infer_body, infer_schema())
    for body, schema in pairs:
        content = body(models)["requestBody"]["content"]["application/json"]
        assert content["schema"] == schema
        assert fits(content["example"], schema)
