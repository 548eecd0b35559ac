"""What ``caveat reproduce`` offers: an entry for each figure or table of the papers."""

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caveat._optional import require
from caveat.engines import Engine

if TYPE_CHECKING:
    from caveat.papers.experiment import AnyExperiment


@dataclass(frozen=True)
class Option:
    """An option of one command only: a field of its experiment."""

    name: str
    kind: Any  # of its value
    default: Any
    text: str  # for the help
    least: int | None = None  # the smallest number


@dataclass(frozen=True)
class Reproduction:
    """A figure or table of the papers."""

    name: str  # as in `caveat reproduce NAME`
    where: str  # module and class of the experiment; loaded when it is needed
    summary: str  # what it is and how long it takes
    options: tuple[Option, ...] = ()  # those that others do not have

    def experiment(
        self, folder: Path, *, quick: bool = False, **options: Any
    ) -> "AnyExperiment":
        """The experiment, with the folder of its files."""
        module, name = self.where.split(":")
        kind = getattr(import_module(f"caveat.papers.{module}"), name)
        found: AnyExperiment = kind(folder, quick, **options)
        return found

    def run(
        self,
        folder: Path,
        *,
        quick: bool,
        n_workers: int | None,
        engine: Engine = Engine.local,
        address: str | None = None,
        **options: Any,
    ) -> str:
        """Run it, write its files, and return its page."""
        require("matplotlib", extra="plot")
        from caveat.papers.runner import reproduce  # here: it brings matplotlib

        experiment = self.experiment(folder, quick=quick, **options)
        return reproduce(
            experiment,
            n_workers=n_workers,
            engine=engine,
            address=address,
            progress=True,
        )


class Protocol(StrEnum):
    """How Table 1 is run."""

    paper = "paper"
    best = "best"
    flagship = "flagship"
    pbp = "pbp"
    vi = "vi"


_TABLE1 = (
    Option(
        "protocol",
        Protocol,
        Protocol.paper,
        "paper: as released; best: what we would ship; flagship: ensembles with a "
        "learned noise; pbp: probabilistic backpropagation; vi: factorised Gaussian "
        "weights.",
    ),
    Option("sets", str, "", "Names with commas, by default all nine."),
    Option("splits", int | None, None, "Only the first so many splits.", least=1),
)

REPRODUCTIONS = (
    Reproduction(
        "table1",
        "table1.experiment:Table1",
        "Table 1 of paper 001: UCI regression (minutes to hours).",
        _TABLE1,
    ),
    Reproduction(
        "co2",
        "series.co2:CO2",
        "Figs 2 and 3 of paper 001: CO2 extrapolated (minutes).",
    ),
    Reproduction(
        "solar",
        "series.solar:Solar",
        "Appendix D.1 of paper 001: gaps interpolated (minutes).",
    ),
    Reproduction(
        "softmax",
        "softmax:Softmax",
        "Fig. 1 of paper 001: functions and softmax (seconds).",
    ),
    Reproduction(
        "mnist",
        "mnist.experiment:Mnist",
        "Fig. 4 of paper 001: a rotated digit (minutes).",
    ),
    Reproduction(
        "convnet",
        "convnet.experiment:ConvNet",
        "Section 4.2 of paper 000: dropout in convnets (minutes).",
    ),
    Reproduction(
        "sequence",
        "sequence.experiment:MaskPerSequence",
        "LSTMs with one mask per sequence (minutes).",
    ),
    Reproduction(
        "ensemble",
        "ensemble.experiment:Ensembles",
        "MC dropout against ensembles, paper 000 (minutes).",
    ),
    Reproduction(
        "rl",
        "rl.experiment:ThompsonSampling",
        "Figs 5 and 6 of paper 001: Thompson sampling (minutes).",
    ),
    Reproduction(
        "shrinkage",
        "shrinkage:Shrinkage",
        "Fig. 1a of paper 002: weights under dropout (seconds).",
    ),
    Reproduction(
        "misspecification",
        "misspecification.experiment:Misspecification",
        "Fig. 1b of paper 002: wrong models (minutes).",
    ),
    Reproduction(
        "reviews",
        "reviews.experiment:AmazonReviews",
        "Fig. 2 of paper 002: Amazon reviews (minutes).",
    ),
)
