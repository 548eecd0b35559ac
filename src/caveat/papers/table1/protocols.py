"""The protocols of Table 1: how networks are set up and chosen.

No function here hands test rows to a search.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from caveat.data import load_uci, load_uci_grid_settings, load_uci_settings
from caveat.data.uci_results import GridSettings, OriginalSettings
from caveat.errors import ParameterError
from caveat.papers.table1.jobs import Job, Plan, SplitRows
from caveat.training.ensembles import Candidate, Problem, Settings, fit_ensembles
from caveat.training.likelihood import Residuals
from caveat.training.search import (
    Choice,
    Fold,
    Task,
    contiguous_folds,
    folds_by_size,
    held_out_residuals,
    last_fifth,
    score_of,
    search,
)

MIDDLE, LARGE = 5_000, 20_000  # rows from which on a set counts as such
ENSEMBLE = 5


def _paper(job: Job, splits: Sequence[SplitRows]) -> tuple[Settings, list[Plan]]:
    """001 as released: constant Adam, batch 32, 400 epochs, dropout on all inputs.

    Besides the published tau, each split has its own, found on folds of its training
    rows. At these length-scales the decay is below 1e-5 whatever tau is, so that the
    same networks serve both, and a search in one dimension on the validation errors
    takes the place of the paper's Bayesian optimisation.
    """
    given = _given(load_uci_settings(), job)
    settings = Settings(schedule="constant", learning_rate=1e-3, keep_last=True)
    data = load_uci(job.dataset)
    candidate = Candidate(
        given.drop_rate,
        given.drop_rate,
        (data.n_hidden,),
        given.lengthscale,
        job.shortened(10 * data.n_epochs),
    )
    if job.variants == ("no dropout",):
        candidate = replace(candidate, drop_rate=0.0, input_drop_rate=0.0)
        settings = replace(settings, n_draws=2)
    tasks = [rows.task for rows in splits]
    choices = search(tasks, [candidate], settings, n_threads=1)
    published = replace(candidate, precision=given.precision)
    if job.variants == ("no dropout",):
        return settings, [Plan(candidate, (c.score.scale,)) for c in choices]
    return settings, [
        Plan(published, (given.precision, choice.score.scale)) for choice in choices
    ]


def _grid(job: Job, splits: Sequence[SplitRows]) -> tuple[Settings, list[Plan]]:
    """The authors' rerun of 2018: rate and tau by the last fifth, batch 128.

    As theirs, it trains a network for each cell of the grid.
    """
    given = _given(load_uci_grid_settings(), job)
    settings = Settings(
        schedule="constant", learning_rate=1e-3, keep_last=True, batch_size=128
    )
    data = load_uci(job.dataset)
    epochs = job.shortened(100 * data.n_epochs)
    candidates = [
        Candidate(rate, rate, (data.n_hidden,), 1e-2, epochs, tau)
        for rate in given.drop_rates
        for tau in given.precisions
    ]
    choices = search(
        [rows.task for rows in splits],
        candidates,
        settings,
        folds=last_fifth,
        n_threads=1,
    )
    return settings, [Plan(c.candidate, (c.score.scale,)) for c in choices]


def _best(job: Job, splits: Sequence[SplitRows]) -> tuple[Settings, list[Plan]]:
    """What we would ship: our schedule, rates by validation, tau by a 1-D search."""
    layers = 1 if job.variants == ("1 layer",) else 2
    n_train = len(splits[0].x)
    settings = _our_settings(n_train, layers)
    hidden = (load_uci(job.dataset).n_hidden,) * layers
    choices = search(
        [rows.task for rows in splits],
        our_candidates(job, n_train, hidden, settings.batch_size),
        settings,
        folds=_three_folds if layers == 2 else folds_by_size,
        n_threads=1,
    )
    plans = [Plan(c.candidate, (c.score.scale,)) for c in choices]
    return settings, plans


def _flagship(job: Job, splits: Sequence[SplitRows]) -> tuple[Settings, list[Plan]]:
    """Five nets with a noise head; the rate by single nets, the scale by ensembles.

    No dropout on the features, and half the epochs of `best`.
    """
    n_train = len(splits[0].x)
    single = replace(_our_settings(n_train, 2), noise_head=True)
    hidden = (load_uci(job.dataset).n_hidden,) * 2
    tasks = [rows.task for rows in splits]
    ours = our_candidates(job, n_train, hidden, single.batch_size)
    longest = max(candidate.epochs for candidate in ours)
    candidates = [
        replace(candidate, epochs=max(2, longest // 2))
        for candidate in ours
        if candidate.epochs == longest and not candidate.input_drop_rate
    ]
    choices = search(tasks, candidates, single, folds=_three_folds, n_threads=1)
    settings = replace(single, n_members=ENSEMBLE)
    return settings, _ensemble_scales(tasks, choices, settings)


def _ensemble_scales(
    tasks: Sequence[Task], choices: Sequence[Choice], settings: Settings
) -> list[Plan]:
    """The scale of each ensemble's precisions, on the folds of its training rows."""
    parts = [
        (task, choice.candidate, fold)
        for task, choice in zip(tasks, choices, strict=True)
        for fold in _three_folds(len(task.x))
    ]
    problems = [
        Problem(
            f"{task.name}, part {number}",
            task.x[fold.train],
            task.y[fold.train],
            candidate,
            seed=task.seed,
        )
        for number, (task, candidate, fold) in enumerate(parts)
    ]
    found: dict[str, list[Residuals]] = {task.name: [] for task in tasks}
    ensembles = fit_ensembles(problems, settings, n_threads=1)
    for (task, _, fold), ensemble in zip(parts, ensembles, strict=True):
        x, y = task.x[fold.valid], task.y[fold.valid]
        found[task.name].append(held_out_residuals(ensemble, x, y, settings.n_draws))
    return [
        Plan(
            choice.candidate,
            (score_of(task, choice.candidate, settings, found[task.name]).scale,),
        )
        for task, choice in zip(tasks, choices, strict=True)
    ]


def _our_settings(n_train: int, layers: int) -> Settings:
    batch_size = 32 if n_train < MIDDLE else 64 if n_train < LARGE else 128
    return Settings(
        learning_rate=1e-2 if layers == 1 else 5e-3,
        batch_size=batch_size,
        n_draws=400,
    )


def our_candidates(
    job: Job, n_train: int, hidden: tuple[int, ...], batch_size: int
) -> list[Candidate]:
    """The same rule for every set.

    Small sets: rates .005 to .1, on the features too or not, trained for 400 epochs
    (and at least 8,000 steps) or a quarter of that. Larger ones: rates .005 and .01
    and one length; that of protein with one layer, 300 instead of 100 epochs, was
    settled on the last fifth of the training rows of its first split.
    """
    rates: tuple[float, ...]
    if n_train < MIDDLE:
        rates = (0.005, 0.01, 0.05, 0.1)
        long = max(400, round(8_000 * batch_size / n_train))
        lengths = [long, long // 4]
    else:
        rates = (0.005, 0.01)
        large = 300 if len(hidden) == 1 else 100
        lengths = [150 if n_train < LARGE else large]
    return [
        Candidate(rate, on_features, hidden, 1e-2, job.shortened(epochs))
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


Decision = Callable[[Job, Sequence[SplitRows]], tuple[Settings, list[Plan]]]

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
