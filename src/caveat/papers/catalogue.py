"""What ``caveat reproduce`` offers: one line for each figure or table."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Reproduction:
    """A figure or table of the papers.

    Attributes
    ----------
    name : str
        As in ``caveat reproduce NAME``; ``caveat.papers.NAME`` holds
        ``reproduce_NAME``.
    summary : str
        What it is and how long it takes.
    """

    name: str
    summary: str

    def run(self, output: Path, *, quick: bool, n_workers: int | None) -> str:
        """Run it, write its files, and return its page.

        Parameters
        ----------
        output : Path
            The folder for page, figure and CSV.
        quick : bool
            Whether this is a smoke test.
        n_workers : int, optional
            Processes, by default one per core.

        Returns
        -------
        str
            The page, Markdown.
        """
        module = import_module(f"caveat.papers.{self.name}")
        run: Callable[..., str] = getattr(module, f"reproduce_{self.name}")
        return run(output, quick=quick, n_workers=n_workers)


REPRODUCTIONS = (
    Reproduction("co2", "Figs 2 and 3 of paper 001: CO2 extrapolated (minutes)."),
    Reproduction("solar", "Appendix D.1 of paper 001: gaps interpolated (minutes)."),
    Reproduction("softmax", "Fig. 1 of paper 001: functions and softmax (seconds)."),
    Reproduction("mnist", "Fig. 4 of paper 001: a rotated digit (minutes)."),
    Reproduction("convnet", "Section 4.2 of paper 000: dropout in convnets (minutes)."),
    Reproduction("sequence", "LSTMs with one mask per sequence (minutes)."),
    Reproduction("ensemble", "MC dropout against ensembles, paper 000 (minutes)."),
    Reproduction("rl", "Figs 5 and 6 of paper 001: Thompson sampling (minutes)."),
    Reproduction("shrinkage", "Fig. 1a of paper 002: weights under dropout (seconds)."),
    Reproduction("misspecification", "Fig. 1b of paper 002: wrong models (minutes)."),
    Reproduction("reviews", "Fig. 2 of paper 002: Amazon reviews (minutes)."),
)
