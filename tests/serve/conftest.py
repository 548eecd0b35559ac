"""One server for the tests of a file."""

import pytest

from tests.serve.running import models, serving


@pytest.fixture(scope="session")
def served_models():
    return models()


@pytest.fixture(scope="module")
def address(served_models):
    with serving(served_models) as found:
        yield found
