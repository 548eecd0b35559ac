"""MLflow: models of tables as pyfuncs, kept as model files and never as pickles."""

from caveat._optional import require

require("mlflow", extra="mlflow")  # before the parts import it
require("pyarrow", extra="mlflow")

from caveat.mlflow.logging import log_model, save_model  # noqa: E402

__all__ = ["log_model", "save_model"]
