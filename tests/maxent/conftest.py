"""Double precision for the tests that ask for it, and for no others."""

import pytest


@pytest.fixture
def x64():
    """JAX in double precision while the test runs, in this thread alone."""
    import jax

    with jax.enable_x64(True):
        yield
