"""The protocols of Table 1: how networks are set up and chosen.

No function here hands test rows to a search.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from caveat.data import load_uci, load_uci_grid_settings, load_uci_settings
from caveat.data.uci_results import GridSettings, OriginalSettings
from caveat.errors import ParameterError
from caveat.papers.table1.jobs import Job, SplitPlan, SplitRows
from caveat.training import (
    Choice,
    GaussianWithPrecision,
    NetworkSpec,
    Problem,
    Schedule,
    Task,
    fit_ensembles,
    grid_search,
)
from caveat.training.likelihood import Residuals
from caveat.training.search import (
    Fold,
    contiguous_folds,
    folds_by_size,
    held_out_residuals,
    last_fifth,
    score_of,
)

MIDDLE, LARGE = 5_000, 20_000  # rows from which on a set counts as such
ENSEMBLE = 5


def _paper(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """001 as released: constant Adam, batch 32, 400 epochs, dropout on all inputs.

    Besides the published tau, each split has its own, found on folds of its training
    rows. At these length-scales the decay is below 1e-5 whatever tau is, so that the
    same networks serve both, and a search in one dimension on the validation errors
    takes the place of the paper's Bayesian optimisation.
    """
    given = _given(load_uci_settings(), job)
    data = load_uci(job.dataset)
    spec = NetworkSpec(
        (data.n_hidden,),
        drop_rate=given.drop_rate,
        input_drop_rate=given.drop_rate,
        lengthscale=given.lengthscale,
        schedule=_plain_schedule(job.shortened(10 * data.n_epochs), 32),
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


def _grid(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """The authors' rerun of 2018: rate and tau by the last fifth, batch 128.

    As theirs, it trains a network for each cell of the grid.
    """
    given = _given(load_uci_grid_settings(), job)
    data = load_uci(job.dataset)
    spec = NetworkSpec(
        (data.n_hidden,),
        lengthscale=1e-2,
        schedule=_plain_schedule(job.shortened(100 * data.n_epochs), 128),
    )
    specs = [
        replace(spec, drop_rate=rate, input_drop_rate=rate, precision=tau)
        for rate in given.drop_rates
        for tau in given.precisions
    ]
    tasks = [rows.task for rows in splits]
    choices = grid_search(tasks, specs, folds=last_fifth, n_threads=1)
    return [SplitPlan(c.spec, (c.score.scale,)) for c in choices]


def _best(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """What we would ship: our schedule, rates by validation, tau by a 1-D search."""
    layers = 1 if job.variants == ("1 layer",) else 2
    n_train = len(splits[0].x)
    hidden = (load_uci(job.dataset).n_hidden,) * layers
    choices = grid_search(
        [rows.task for rows in splits],
        our_specs(job, n_train, hidden),
        folds=_three_folds if layers == 2 else folds_by_size,
        n_threads=1,
    )
    return [SplitPlan(c.spec, (c.score.scale,)) for c in choices]


def _flagship(job: Job, splits: Sequence[SplitRows]) -> list[SplitPlan]:
    """Five nets with a noise head; the rate by single nets, the scale by ensembles.

    No dropout on the features, and half the epochs of `best`.
    """
    n_train = len(splits[0].x)
    hidden = (load_uci(job.dataset).n_hidden,) * 2
    tasks = [rows.task for rows in splits]
    ours = our_specs(job, n_train, hidden)
    longest = max(spec.schedule.epochs for spec in ours)
    specs = [
        spec.vary(epochs=max(2, longest // 2), objective=GaussianWithPrecision())
        for spec in ours
        if spec.schedule.epochs == longest and not spec.input_drop_rate
    ]
    choices = grid_search(tasks, specs, folds=_three_folds, n_threads=1)
    return _ensemble_scales(tasks, choices)


def _ensemble_scales(
    tasks: Sequence[Task], choices: Sequence[Choice]
) -> list[SplitPlan]:
    """The scale of each ensemble's precisions, on the folds of its training rows."""
    specs = [replace(choice.spec, n_members=ENSEMBLE) for choice in choices]
    parts = [
        (task, spec, fold)
        for task, spec in zip(tasks, specs, strict=True)
        for fold in _three_folds(len(task.x))
    ]
    problems = [
        Problem(
            f"{task.name}, part {number}",
            task.x[fold.train],
            task.y[fold.train],
            spec,
            seed=task.seed,
        )
        for number, (task, spec, fold) in enumerate(parts)
    ]
    found: dict[str, list[Residuals]] = {task.name: [] for task in tasks}
    ensembles = fit_ensembles(problems, n_threads=1)
    for (task, spec, fold), ensemble in zip(parts, ensembles, strict=True):
        x, y = task.x[fold.valid], task.y[fold.valid]
        found[task.name].append(held_out_residuals(ensemble, x, y, spec.n_draws))
    return [
        SplitPlan(spec, (score_of(task, spec, found[task.name]).scale,))
        for task, spec in zip(tasks, specs, strict=True)
    ]


def _plain_schedule(epochs: int, batch_size: int) -> Schedule:
    """As the authors trained: Adam at a constant rate, on all rows of an epoch."""
    return Schedule(epochs, batch_size, 1e-3, "constant", keep_last=True)


def _our_schedule(n_train: int, layers: int) -> Schedule:
    batch_size = 32 if n_train < MIDDLE else 64 if n_train < LARGE else 128
    return Schedule(learning_rate=1e-2 if layers == 1 else 5e-3, batch_size=batch_size)


def our_specs(job: Job, n_train: int, hidden: tuple[int, ...]) -> list[NetworkSpec]:
    """The same rule for every set.

    Small sets: rates .005 to .1, on the features too or not, trained for 400 epochs
    (and at least 8,000 steps) or a quarter of that. Larger ones: rates .005 and .01
    and one length; that of protein with one layer, 300 instead of 100 epochs, was
    settled on the last fifth of the training rows of its first split.
    """
    rates: tuple[float, ...]
    schedule = _our_schedule(n_train, len(hidden))
    if n_train < MIDDLE:
        rates = (0.005, 0.01, 0.05, 0.1)
        long = max(400, round(8_000 * schedule.batch_size / n_train))
        lengths = [long, long // 4]
    else:
        rates = (0.005, 0.01)
        large = 300 if len(hidden) == 1 else 100
        lengths = [150 if n_train < LARGE else large]
    base = NetworkSpec(hidden, lengthscale=1e-2, schedule=schedule, n_draws=400)
    return [
        base.vary(
            drop_rate=rate,
            input_drop_rate=on_features,
            epochs=job.shortened(epochs),
        )
        for epochs in lengths
        for rate in rates
        for on_features in (0.0, rate)
    ]


Given = TypeVar("Given", OriginalSettings, GridSettings)


def _given(settings: Sequence[Given], job: Job) -> Given:
    """The authors' settings for the set of a job."""
    for found in settings:
        if found.dataset == job.dataset:
            return found
    raise ParameterError(
        f"The authors ran {job.dataset!r} under other protocols only, not "
        f"{job.protocol!r}. Choose --protocol paper or best."
    )


def _three_folds(n_rows: int) -> list[Fold]:
    return last_fifth(n_rows) if n_rows >= MIDDLE else contiguous_folds(n_rows, 3)


Decision = Callable[[Job, Sequence[SplitRows]], list[SplitPlan]]

PROTOCOLS: dict[str, Decision] = {
    "paper": _paper,
    "grid": _grid,
    "best": _best,
    "flagship": _flagship,
}
VARIANTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "paper": (("published precision", "searched precision"), ("no dropout",)),
    "grid": (("1 layer",),),
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
