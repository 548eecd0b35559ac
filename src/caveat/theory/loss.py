"""What is coded as the loss: its scale decides what precision and penalty mean."""

from dataclasses import dataclass, replace

from caveat import _validation as validation


@dataclass(frozen=True)
class Loss:
    """What is coded as the data term of the objective, averaged over rows.

    Made by one of the class methods; ``Loss(scale=c)`` for anything else.

    Attributes
    ----------
    scale : float
        c, the factor before a row's squared error summed over outputs.
    gaussian : bool
        Whether the loss is a squared error, whose precision tau is open. If not, it
        is a log-likelihood, and its precision is 1.

    Examples
    --------
    >>> Loss.squared_error()
    Loss(scale=1.0, gaussian=True)
    >>> Loss.mean_squared_error(n_outputs=4)
    Loss(scale=0.25, gaussian=True)
    >>> Loss.half_squared_error().summed_over_rows(32).scale
    16.0
    """

    scale: float
    gaussian: bool = True

    def __post_init__(self) -> None:
        validation.positive("scale", self.scale)

    @classmethod
    def half_squared_error(cls) -> "Loss":
        """½ |y - f|² summed over outputs, averaged over rows: the papers' loss."""
        return cls(0.5)

    @classmethod
    def squared_error(cls) -> "Loss":
        """|y - f|² summed over outputs, averaged over rows."""
        return cls(1.0)

    @classmethod
    def mean_squared_error(cls, n_outputs: int) -> "Loss":
        """Squared errors averaged over rows and outputs: ``torch.nn.MSELoss()``."""
        return cls(1.0 / validation.positive_int("n_outputs", n_outputs))

    @classmethod
    def negative_log_likelihood(cls) -> "Loss":
        """-log p(y|x) averaged over rows: cross entropy, or a net with a noise head."""
        return cls(0.5, gaussian=False)

    def summed_over_rows(self, batch_size: int) -> "Loss":
        """The same loss summed, not averaged, over the rows of a batch."""
        n_rows = validation.positive_int("batch_size", batch_size)
        return replace(self, scale=self.scale * n_rows)


HALF_SQUARED_ERROR = Loss.half_squared_error()
