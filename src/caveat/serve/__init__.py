"""A server for fitted models: Open Inference Protocol v2, rows by name, streams."""

from caveat._optional import require

require("fastapi", extra="serve")
require("uvicorn", extra="serve")  # before the parts import it

from caveat.serve.array_models import NetworkModel  # noqa: E402
from caveat.serve.limits import Limits  # noqa: E402
from caveat.serve.running import run  # noqa: E402
from caveat.serve.web import app  # noqa: E402

__all__ = ["Limits", "NetworkModel", "app", "run"]
