"""Results of Table 1, one record per split and variant."""

from dataclasses import dataclass

Key = tuple[str, str, str, int]  # protocol, variant, set, split


@dataclass(frozen=True)
class Record:
    """What was measured on the test rows of one split.

    Attributes
    ----------
    protocol, variant : str
        Such as ``"best"``, ``"2 layers"``.
    dataset : str
    split : int
    rmse, log_likelihood : float
        In the units of y; log_likelihood is the mean log density in nats.
    rmse_weight_averaging : float
        Of one pass with the noise off.
    scale : float
        The precision tau, or, with a noise head, the factor on the learned ones.
    drop_rate, input_drop_rate : float
    hidden_layers, epochs, n_networks, n_draws : int
        Draws are per network.
    seconds : float
        Search, training and scoring of this split, by the clock, with one core.
    """

    protocol: str
    variant: str
    dataset: str
    split: int
    rmse: float
    log_likelihood: float
    rmse_weight_averaging: float
    scale: float
    drop_rate: float
    input_drop_rate: float
    hidden_layers: int
    epochs: int
    n_networks: int
    n_draws: int
    seconds: float

    @property
    def key(self) -> Key:
        """What tells records apart."""
        return self.protocol, self.variant, self.dataset, self.split
