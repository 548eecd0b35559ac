"""Records of Table 1 that nobody computed."""

from caveat.papers.table1.jobs import Record


def a_record(**changes):
    """Of one split, with what is changed."""
    values = {
        "protocol": "paper",
        "variant": "published precision",
        "dataset": "boston",
        "split": 0,
        "rmse": 3.0,
        "log_likelihood": -2.5,
        "rmse_weight_averaging": 3.1,
        "scale": 0.16,
        "drop_rate": 0.05,
        "input_drop_rate": 0.05,
        "hidden_layers": 1,
        "epochs": 400,
        "n_networks": 1,
        "n_draws": 10_000,
        "seconds": 1.0,
    }
    return Record(**(values | changes))
