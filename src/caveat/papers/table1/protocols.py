"""The protocols of Table 1: how networks are set up and chosen.

No function here hands test rows to a search.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from caveat.data import load_uci, load_uci_settings
from caveat.data.uci_results import OriginalSettings
from caveat.errors import ParameterError
from caveat.papers.table1.climbing import Climb, chosen, lengths
from caveat.papers.table1.jobs import Job, SplitPlan, SplitRows
from caveat.training import GaussianWithPrecision, NetworkSpec, Schedule, grid_search
from caveat.training.search import (
    Fold,
    Folds,
    contiguous_folds,
    folds_by_size,
    last_fifth,
)

MIDDLE, LARGE = 5_000, 20_000  # rows from which on a set counts as such
ENSEMBLE = 5
HEAD = GaussianWithPrecision(beta=0.5)


def _paper(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """001 as released: constant Adam, batch 32, 400 epochs, dropout on all inputs.

    Besides the published tau, each split has its own, found on folds of its training
    rows. At these length-scales the decay is below 1e-5 whatever tau is, so that the
    same networks serve both, and a search in one dimension on the validation errors
    takes the place of the paper's Bayesian optimisation.
    """
    given = _given(job.dataset)
    data = load_uci(job.dataset)
    spec = NetworkSpec(
        (data.n_hidden,),
        drop_rate=given.drop_rate,
        input_drop_rate=given.drop_rate,
        lengthscale=given.lengthscale,
        schedule=_plain_schedule(job.shortened(10 * data.n_epochs)),
    )
    if job.variants == ("no dropout",):
        spec = replace(spec, drop_rate=0.0, input_drop_rate=0.0, n_draws=2)
    tasks = [rows.task for rows in splits]
    choices = grid_search(tasks, [spec], n_threads=1)
    if job.variants == ("no dropout",):
        return [SplitPlan(spec, (c.score.scale,)) for c in choices]
    published = replace(spec, precision=given.precision)
    return [
        SplitPlan(published, (given.precision, choice.score.scale))
        for choice in choices
    ]


def _best(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """What we would ship: a cosine, rates and epochs by validation, tau in 1-D."""
    layers = 1 if job.variants == ("1 layer",) else 2
    folds = _three_folds if layers == 2 else folds_by_size
    return [
        _chosen(job, rows, start(job, len(rows.x), layers), folds) for rows in splits
    ]


def _flagship(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """Five networks of two layers with a noise head.

    Rates are chosen by single networks, the length and the scale by ensembles. The
    head's beta is that which its authors recommend.
    """
    plans = []
    for rows in splits:
        spec = replace(start(job, len(rows.x), 2), objective=HEAD)
        plans.append(_chosen(job, rows, spec, _three_folds, ENSEMBLE))
    return plans


def _chosen(
    job: Job, rows: SplitRows, spec: NetworkSpec, folds: Folds, n_members: int = 1
) -> SplitPlan:
    epochs = lengths(job, len(rows.x), spec.schedule.batch_size)
    choice = chosen(Climb(rows.task, folds), spec, epochs, n_members)
    return SplitPlan(choice.spec, (choice.score.scale,))


def _plain_schedule(epochs: int) -> Schedule:
    """As the authors trained: Adam at a constant rate, on all rows of an epoch."""
    return Schedule(epochs, 32, 1e-3, "constant", keep_last=True)


def start(job: Job, n_train: int, layers: int) -> NetworkSpec:
    """Where a search begins: all that is set beforehand, the same rule for every set.

    That are the paper's widths, batches and draws by the number of rows (for their
    cost), a cosine, and the length-scale.
    """
    batch_size = 32 if n_train < MIDDLE else 64 if n_train < LARGE else 128
    return NetworkSpec(
        (load_uci(job.dataset).n_hidden,) * layers,
        lengthscale=1e-2,
        schedule=Schedule(batch_size=batch_size, learning_rate=5e-3),
        n_draws=200 if n_train < MIDDLE else 100,
    )


def _given(dataset: str) -> OriginalSettings:
    """The settings that the authors published for a set."""
    for found in load_uci_settings():
        if found.dataset == dataset:
            return found
    raise ParameterError(
        f"The authors published no settings for {dataset!r}. Choose --protocol best."
    )


def _three_folds(n_rows: int) -> list[Fold]:
    return last_fifth(n_rows) if n_rows >= MIDDLE else contiguous_folds(n_rows, 3)


Decision = Callable[[Job, Sequence[SplitRows]], list[SplitPlan]]

PROTOCOLS: dict[str, Decision] = {
    "paper": _paper,
    "best": _best,
    "flagship": _flagship,
}
VARIANTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "paper": (("published precision", "searched precision"), ("no dropout",)),
    "best": (("1 layer",), ("2 layers",)),
    "flagship": (("5 networks",),),
    "pbp": (("1 layer",),),
    "vi": (("1 layer",),),
}


def variants(protocol: str, dataset: str) -> list[tuple[str, ...]]:
    """The rows of a protocol for a set, those of the same networks together.

    ``"no dropout"`` is for Boston alone.
    """
    if protocol not in VARIANTS:
        known = ", ".join(map(repr, VARIANTS))
        raise ParameterError(f"protocol must be one of {known}. Got {protocol!r}.")
    every = VARIANTS[protocol]
    return [v for v in every if v != ("no dropout",) or dataset == "boston"]
