"""A fleet: many small networks trained as one batched computation.

A search or a table of results needs hundreds of small networks (splits x settings x
seeds). One by one each spends its time in Python; stacked, they share every call.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch

from caveat._progress import ProgressBar
from caveat._threads import Stopped, side_by_side
from caveat.errors import (
    CaveatWarning,
    ParameterError,
    ShapeError,
    UnsupportedModelError,
)
from caveat.noise import Noise
from caveat.training.cohort import Cohort
from caveat.training.compiled import refusal, train_compiled
from caveat.training.families import train_one_by_one
from caveat.training.members import Member, Rows
from caveat.training.stacked import StackedNetworks
from caveat.training.stopping import Watch
from caveat.training.trained import Trained

_COHORT = 2**17  # activations of a layer, of the members that are computed together
_LEAST_COHORT = 8


def train(
    members: Sequence[Member],
    data: Sequence[Rows],
    *,
    watch: Watch | None = None,
    n_threads: int | None = None,
    progress: bool | None = False,
    compiled: bool | None = None,
) -> Trained:
    """Train all members at once, each on its data set with its own settings.

    Parameters
    ----------
    members : sequence of Member
        Their names must differ, and ``spec.shared`` must be the same. A member's
        result depends on its own settings and seed, not on the others (up to the
        rounding of batched products).
    data : sequence of Rows
        The data sets that members refer to, of any lengths, standardised.
    watch : Watch, optional
        Stops members early; see ``caveat.training.stopping``.
    n_threads : int, optional
        How many cores to use, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.
    compiled : bool, optional
        Train by the compiled kernel (see :func:`kernel_status`) or by torch; the same
        networks up to rounding. By default the kernel, where it is there and covers the
        members; True is an error where not.

    Returns
    -------
    Trained
        In the order of ``members``. Those that diverged are named there and in a
        warning; the others are not touched by it.

    Examples
    --------
    >>> rows = Rows.of(np.linspace(-1, 1, 40)[:, None], np.linspace(-1, 1, 40))
    >>> spec = NetworkSpec((20,), schedule=Schedule(epochs=50))
    >>> members = [
    ...     Member.of(spec.vary(drop_rate=rate), f"rate {rate}", precision=10.0,
    ...               n_train=len(rows), seed=7)
    ...     for rate in (0.05, 0.5)
    ... ]
    >>> trained = train(members, [rows])
    >>> trained.draws(rows.x, n_draws=100).shape
    torch.Size([100, 2, 40, 1])
    """
    _check(members, data, watch)
    refused = None if compiled is False else refusal(members, data, watch)
    if compiled and refused is not None:
        raise UnsupportedModelError(_NOT_COMPILED.format(reason=refused))
    if isinstance(members[0].spec.noise, Noise):
        return train_one_by_one(members, data, progress=progress)
    threads = n_threads or torch.get_num_threads()
    with _bar(members, data, progress) as bar:
        if compiled is not False and refused is None:
            trained = train_compiled(members, data, watch, threads, bar)
        else:
            trained = _train_by_torch(members, data, watch, threads, bar)
    if trained.diverged:
        names = _some(trained.diverged)
        warnings.warn(_DIVERGED.format(names=names), CaveatWarning, stacklevel=2)
    return trained


def _train_by_torch(
    members: Sequence[Member],
    data: Sequence[Rows],
    watch: Watch | None,
    n_threads: int,
    bar: ProgressBar,
) -> StackedNetworks:
    if watch is None:
        parts = _cohorts(members, data)
    else:
        watch = watch.afresh()
        parts = [list(range(len(members)))]
    done = side_by_side(
        lambda part, stopped: _train_cohort(
            [members[i] for i in part], data, watch, bar, stopped
        ),
        parts,
        n_threads,
    )
    return _joined(done, [i for part in parts for i in part])


def _cohorts(members: Sequence[Member], data: Sequence[Rows]) -> list[list[int]]:
    """Members that are computed together: of like length, and fitting the caches."""
    spec = members[0].spec
    widest = max((data[0].x.shape[1], *spec.hidden))
    size = max(_LEAST_COHORT, _COHORT // (spec.schedule.batch_size * widest))
    order = sorted(range(len(members)), key=lambda i: -members[i].n_steps(data))
    return [order[start : start + size] for start in range(0, len(order), size)]


@torch.no_grad()
def _train_cohort(
    members: Sequence[Member],
    data: Sequence[Rows],
    watch: Watch | None,
    bar: ProgressBar,
    stopped: Stopped,
) -> StackedNetworks:
    run = Cohort(members, data)
    for done in run.chunks(watch.every if watch else run.n_steps, stopped):
        bar.advance(done * len(members))
        run.look()
        is_last = run.step == run.n_steps
        if watch is not None and (is_last or watch.is_due(run.step)):
            watch.look(run.stack, run.parameters(), run.step)
            if watch.has_given_up():
                break
    return run.result(watch)


def _joined(parts: Sequence[StackedNetworks], order: Sequence[int]) -> StackedNetworks:
    """Cohorts as one fleet in the order of its members."""
    back = np.argsort(order).tolist()
    joined = StackedNetworks(
        tuple(member for part in parts for member in part.members),
        tuple(name for part in parts for name in part.diverged),
        torch.cat([part.stopped for part in parts]),
        parts[0].architecture,
        torch.cat([part.parameters for part in parts]),
        losses=torch.cat([part.losses for part in parts if part.losses is not None]),
    )
    return joined[back]


def _bar(
    members: Sequence[Member], data: Sequence[Rows], show: bool | None
) -> ProgressBar:
    total = sum(member.n_steps(data) for member in members)
    return ProgressBar("Training steps", total, show)


_NO_WATCH = """early stopping works with 'bernoulli' and 'gaussian' noise only. Leave it
out, or choose the number of epochs by a search."""
_NO_ROWS = """schedule.early_stopping needs rows to stop by. fit_ensembles holds them
out; train needs watch=Watch(rows, ...)."""
_NOT_ALIKE = """members of one fleet must have the same hidden units, activation, noise,
objective, batch size, decay, keep_last and early stopping. Train others apart."""
_NOT_COMPILED = """compiled=True asks for the compiled kernel, which cannot be used:
{reason}. Leave compiled out to train by torch."""
_DIVERGED = """the weights of {names} are not finite: training diverged.
The other members are not affected. Lower the learning rate of these."""


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _check(
    members: Sequence[Member], data: Sequence[Rows], watch: Watch | None
) -> None:
    if not members:
        raise ParameterError("members must hold at least one network. Got none.")
    names = [m.name for m in members]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ParameterError(f"names of members must differ. Got {twice!r} twice.")
    if len({m.spec.shared for m in members}) > 1:
        raise ParameterError(_NOT_ALIKE)
    _check_stopping(members[0], watch)
    for member in members:
        _check_member(member, len(data))
    for place, rows in enumerate(data):
        _check_rows(rows, f"data set {place}", data[0])
    if watch is not None:
        _check_watch(watch, len(members), data[0])


def _check_stopping(member: Member, watch: Watch | None) -> None:
    if watch is not None and isinstance(member.spec.noise, Noise):
        raise ParameterError(_NO_WATCH)
    if watch is None and member.spec.schedule.early_stopping is not None:
        raise ParameterError(_NO_ROWS)


def _check_member(member: Member, n_sets: int) -> None:
    count = len(member.drop_rates)
    if len(member.l2_penalties) != count:
        raise ParameterError(
            f"l2_penalties of member {member.name!r} must have one value per weight "
            f"layer, {count}. Got {member.l2_penalties}."
        )
    if not 0 <= member.data < n_sets:
        raise ParameterError(
            f"data of member {member.name!r} must be the number of one of {n_sets} "
            f"data sets. Got {member.data}."
        )


def _check_watch(watch: Watch, n_members: int, first: Rows) -> None:
    if len(watch.rows) != n_members:
        raise ParameterError(
            f"watch must hold one set of rows per member, {n_members}. "
            f"Got {len(watch.rows)}."
        )
    checked = set()
    for place, rows in enumerate(watch.rows):
        if id(rows) not in checked:  # members of an ensemble share theirs
            _check_rows(rows, f"set {place} of watch", first)
            checked.add(id(rows))


def _check_rows(rows: Rows, name: str, first: Rows) -> None:
    shapes = (rows.x.shape[1], rows.y.shape[1])
    expected = (first.x.shape[1], first.y.shape[1])
    if not len(rows) or shapes != expected:
        raise ShapeError(
            f"{name} must have rows of {expected[0]} inputs and "
            f"{expected[1]} targets, as the first has. Got {tuple(rows.x.shape)} and "
            f"{tuple(rows.y.shape)}."
        )
    if not (rows.x.isfinite().all() and rows.y.isfinite().all()):
        raise ParameterError(f"{name} must be finite. Got NaN or infinity.")
