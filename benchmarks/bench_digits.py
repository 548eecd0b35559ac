"""The digits of ``caveat demo`` over several seeds: errors, and doubt where it is due.

A LeNet with dropout before every weight layer but the first, as the demo has it, and
one with dropout before the last alone, as the paper's. A seed is a split of the images,
the first weights, the batches and the masks. Architecture and settings were chosen by
the validation images of seed 0; the 1s that are turned are validation images.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat import MCDropout
from caveat.data.embedded import load_digits_images
from caveat.demo import digits

MODULE = "benchmarks.bench_digits"
SEEDS = 5
PLACES = {"all but the first": False, "the last": True}  # weight layers; last only
COLUMNS = (
    "dropout before",
    "seed",
    "% wrong, 100 draws",
    "% wrong, averaged weights",
    "mean log p",
    "turned 1s read wrongly",
    "of these surely",
)
NOTES = (
    "Test images: a quarter of scikit-learn's 1,797 digits; half are for learning.",
    f"Turned: all validation 1s by {len(digits.ANGLES)} angles, share of images.",
    f"Surely: with a variation ratio below {digits.SURE}.",
    "mean: over seeds, with its standard error.",
)


@dataclass(frozen=True)
class Found:
    """What one network gives; shares but for the log-likelihood."""

    wrong: float
    standard_wrong: float
    log_likelihood: float
    turned_wrong: float
    sure: float

    def shown(self) -> list[str]:
        """Percent and nats."""
        return [
            f"{100 * self.wrong:.1f}",
            f"{100 * self.standard_wrong:.1f}",
            f"{self.log_likelihood:.3f}",
            f"{self.turned_wrong:.2f}",
            f"{self.sure:.2f}",
        ]


def main(argv: Sequence[str] | None = None) -> int:
    """Train and score; no target is set."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = _options().parse_args(given)
    seeds = range(1 if chosen.quick else chosen.seeds)
    effort = digits.QUICK if chosen.quick else digits.FULL
    rows = [row for place in PLACES for row in _rows(place, seeds, effort)]
    report = Report("Digits of the demo", COLUMNS, rows, NOTES)
    report.show(console())
    folder = chosen.output or (None if chosen.quick else FOLDER)
    if folder is not None:
        provenance = Provenance.now(MODULE, given)
        store_markdown(folder / "digits.md", provenance, [report])
    return 0


def _options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(f"python -m {MODULE}", description=__doc__)
    found.add_argument("--quick", action="store_true", help="a smoke test")
    found.add_argument("--seeds", type=int, default=SEEDS, help="so many, from 0")
    found.add_argument("--output", type=Path, help="folder for the results")
    return found


def _rows(place: str, seeds: range, effort: digits.DigitsEffort) -> Iterator[list[str]]:
    found = [measured(seed, effort, last_only=PLACES[place]) for seed in seeds]
    for seed, own in zip(seeds, found, strict=True):
        yield [place, str(seed), *own.shown()]
    if len(found) > 1:
        yield [place, "mean", *map(_mean, *(own.shown() for own in found))]


def _mean(*values: str) -> str:
    numbers = np.array(values, dtype=float)
    error = numbers.std(ddof=1) / np.sqrt(len(numbers))
    return f"{numbers.mean():.3f} ± {error:.3f}"


def measured(seed: int, effort: digits.DigitsEffort, *, last_only: bool) -> Found:
    """Train one network, and ask it about test images and turned 1s."""
    task = digits.DigitsTask.of(load_digits_images(), seed=seed)
    net = digits.train(task, effort, seed=seed, last_only=last_only)
    sampler = MCDropout(net, seed=seed)
    images, labels = task.test
    drawn = sampler.classify(images, n_draws=digits.N_DRAWS)
    with torch.no_grad():
        standard = net(images).argmax(-1)
    ones = task.validation[0][task.validation[1] == digits.DIGIT]
    turned = digits.Turned.of(sampler, ones)
    return Found(
        (drawn.label != labels).double().mean().item(),
        (standard != labels).double().mean().item(),
        drawn.log_prob(labels).double().mean().item(),
        turned.share_wrong,
        turned.share_sure,
    )


if __name__ == "__main__":
    raise SystemExit(main())
