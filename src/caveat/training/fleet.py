"""A fleet: many small networks trained as one batched computation.

A search or a table of results needs hundreds of small networks (splits x settings x
seeds). One by one each spends its time in Python; stacked, they share every call.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch

from caveat import _validation as validation
from caveat._progress import ProgressBar
from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.noise import Noise
from caveat.training.cohort import Cohort, n_steps
from caveat.training.members import Member, Recipe, Rows
from caveat.training.modules import TrainedModules, train_modules
from caveat.training.stopping import Watch
from caveat.training.threads import side_by_side
from caveat.training.trained import Trained

_COHORT = 2**17  # activations of a layer, of the members that are computed together
_LEAST_COHORT = 8


def train(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    *,
    watch: Watch | None = None,
    n_threads: int | None = None,
    progress: bool | None = False,
) -> Trained | TrainedModules:
    """Train all members at once, each on its data set with its own settings.

    Parameters
    ----------
    recipe : Recipe
        What they have in common.
    members : sequence of Member
        Their names must differ. A member's result depends on its own settings and
        seed, not on the others (up to the rounding of batched products).
    data : sequence of Rows
        The data sets that members refer to, of any lengths, standardised.
    watch : Watch, optional
        Stops members early; see ``caveat.training.stopping``.
    n_threads : int, optional
        How many cores to use, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    Trained, or TrainedModules if the noise is a family
        In the order of ``members``. Those that diverged are named there and in a
        warning; the others are not touched by it.

    Examples
    --------
    >>> rows = Rows.of(np.linspace(-1, 1, 40)[:, None], np.linspace(-1, 1, 40))
    >>> net = Architecture(n_inputs=1, hidden=(20,), n_outputs=1)
    >>> members = [
    ...     Member(f"rate {rate}", (0.0, rate), (0.0, 0.0), epochs=50, seed=7)
    ...     for rate in (0.05, 0.5)
    ... ]
    >>> trained = train(Recipe(net), members, [rows])
    >>> trained.draws(rows.x, n_draws=100).shape
    torch.Size([100, 2, 40, 1])
    """
    _check(recipe, members, data)
    if isinstance(recipe.noise, Noise):
        if watch is not None:
            raise ParameterError(_NO_WATCH)
        return train_modules(recipe, members, data, progress=progress)
    if watch is None:
        parts = _cohorts(recipe, members, data)
    else:
        parts = [list(range(len(members)))]
    with _bar(recipe, members, data, progress) as bar:
        done = side_by_side(
            lambda part: _train_cohort(
                recipe, [members[i] for i in part], data, watch, bar
            ),
            parts,
            n_threads or torch.get_num_threads(),
        )
    return _joined(done, [i for part in parts for i in part])


def _cohorts(
    recipe: Recipe, members: Sequence[Member], data: Sequence[Rows]
) -> list[list[int]]:
    """Members that are computed together: of like length, and fitting the caches."""
    widest = max(recipe.architecture.fan_ins)
    size = max(_LEAST_COHORT, _COHORT // (recipe.batch_size * widest))
    order = sorted(
        range(len(members)), key=lambda i: -n_steps(recipe, members[i], data)
    )
    return [order[start : start + size] for start in range(0, len(order), size)]


@torch.no_grad()
def _train_cohort(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    watch: Watch | None,
    bar: ProgressBar,
) -> Trained:
    run = Cohort(recipe, members, data)
    for done in run.chunks(watch.every if watch else run.n_steps):
        bar.advance(done * len(members))
        if watch is not None and watch.is_due(run.step):
            watch.look(run.stack, run.parameters(), run.step)
            if watch.has_given_up():
                break
    return run.result(watch)


def _joined(parts: Sequence[Trained], order: Sequence[int]) -> Trained:
    """Cohorts as one fleet in the order of its members; warns of those diverged."""
    back = np.argsort(order).tolist()
    joined = Trained(
        parts[0].recipe,
        tuple(member for part in parts for member in part.members),
        torch.cat([part.parameters for part in parts]),
        tuple(name for part in parts for name in part.diverged),
        torch.cat([part.stopped for part in parts]),
    )
    if joined.diverged:
        names = _some(joined.diverged)
        warnings.warn(_DIVERGED.format(names=names), CaveatWarning, stacklevel=3)
    return joined[back]


def _bar(
    recipe: Recipe,
    members: Sequence[Member],
    data: Sequence[Rows],
    show: bool | None,
) -> ProgressBar:
    total = sum(n_steps(recipe, member, data) for member in members)
    return ProgressBar("Training steps", total, show)


_NO_WATCH = """early stopping works with 'bernoulli' and 'gaussian' noise only. Leave it
out, or choose the number of epochs by a search."""
_DIVERGED = """the weights of {names} are not finite: training diverged.
The other members are not affected. Lower the learning rate of these."""


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _check(recipe: Recipe, members: Sequence[Member], data: Sequence[Rows]) -> None:
    architecture, layer_count = recipe.architecture, len(recipe.architecture.shapes)
    if not members:
        raise ParameterError("members must hold at least one network. Got none.")
    names = [m.name for m in members]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ParameterError(f"names of members must differ. Got {twice!r} twice.")
    for member in members:
        _check_member(member, layer_count, len(data))
    for place, rows in enumerate(data):
        _check_rows(rows, place, architecture.n_inputs)


def _check_member(member: Member, layer_count: int, n_sets: int) -> None:
    where = f"member {member.name!r}"
    for label in ("drop_rates", "l2_penalties"):
        if len(getattr(member, label)) != layer_count:
            raise ParameterError(
                f"{label} of {where} must have one value per weight layer, "
                f"{layer_count}. Got {getattr(member, label)}."
            )
    for rate in member.drop_rates:
        validation.drop_rate(rate, where=where)
    validation.positive_int(f"epochs of {where}", member.epochs)
    if not 0 <= member.data < n_sets:
        raise ParameterError(
            f"data of {where} must be the number of one of {n_sets} data sets. "
            f"Got {member.data}."
        )


def _check_rows(rows: Rows, place: int, n_inputs: int) -> None:
    if not len(rows) or rows.x.shape[1] != n_inputs:
        raise ShapeError(
            f"data set {place} must have rows of {n_inputs} inputs. "
            f"Got {tuple(rows.x.shape)}."
        )
    if not (rows.x.isfinite().all() and rows.y.isfinite().all()):
        raise ParameterError(f"data set {place} must be finite. Got NaN or infinity.")
