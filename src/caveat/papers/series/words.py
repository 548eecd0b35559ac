"""Words that pages of series share."""

from collections.abc import Iterable, Sequence

from caveat.papers.output import markdown_table
from caveat.papers.series.nets import BIAS_RATE, MOMENTUM, RELEASED_STEPS, Net


def verdict(is_so: bool) -> str:
    """Whether a claim holds, by the numbers."""
    return "**holds**" if is_so else "**does not hold**"


def claim(words: str, found: str) -> str:
    """A claim in the paper's words, and what was found."""
    return f'The paper: "{words}"\n\n{found}'


def training(nets: Sequence[Net]) -> str:
    """How nets were trained."""
    first = nets[0]
    return (
        f"Nets of {first.width} units per hidden layer (their names count weight "
        "layers, as the released files explain the paper's count), dropout after every "
        "hidden non-linearity and none on the input. Trained as in the released files: "
        f"gradient descent with momentum {MOMENTUM:g}, batches of {first.batch_size}, "
        f"rate · (1 + γ step)^-power, biases at {BIAS_RATE:g} times the rate, half "
        "squared error, decay added to the gradient. **Iterations: "
        f"{first.n_steps:,}; the paper has {RELEASED_STEPS:,}.** All else is as "
        "released."
    )


def settings_table(nets: Iterable[Net]) -> str:
    """The settings that differ between nets."""
    head = ["net", "drop rate", "rate", "decay", "γ", "power"]
    return markdown_table(
        head,
        [
            [
                net.name,
                f"{net.drop_rate:g}",
                f"{net.rate:g}",
                f"{net.weight_decay:g}",
                f"{net.gamma:g}",
                f"{net.power:g}",
            ]
            for net in nets
        ],
    )
