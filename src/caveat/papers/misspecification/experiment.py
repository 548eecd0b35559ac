"""Figure 1b of paper 002: ridge and dropout when the model is wrong."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.misspecification.simulation import (
    CONDITIONS,
    DROPOUT_PRIOR,
    N_FEATURES,
    N_ROWS,
    ModelRecord,
    parts,
    run_part,
    summarise,
)
from caveat.papers.page import Claim, Part, claim, flow, table, verdict
from caveat.papers.style import ink, legend_below, panels

_PAR = 0.02  # difference in error, relative, up to which two methods are on par
_CLEAR = 3.0  # standard errors from which a difference is clear
_READING = f"""How the paper is read: for each data set X = R L, with R standard normal
(20 rows to fit and 20 to test, 10 columns) and L normal (10 by p) with columns of unit
length; y = X w + e, w and e standard normal, so that λ0 = σ² = 1. No intercept.

- default: y from the model itself.
- junk features: all but the first 10 weights are 0. With p = 10 this is the default
  again, on other draws.
- covariate shift: y is drawn as in the default; then each column of X is multiplied by
  its own standard normal number, the same for fit and test rows, and the models see
  only the product.

Ridge is the model with f = 0 and λ0 on a grid. Dropout has the wrong prior
λ0 = {DROPOUT_PRIOR:g} and f on a grid with {N_ROWS} f/(1 - f) = the λ0 of ridge, which
is as strong on columns of unit mean square; it predicts (1 - f) x'μ. The paper calls
p = 10 underdetermined and p = 40 overdetermined; it is the other way round."""


class ConditionPanel:
    """The records of one condition and one number of features."""

    def __init__(
        self, records: Sequence[ModelRecord], condition: str, n_features: int
    ) -> None:
        self.condition, self.n_features = condition, n_features
        self._own = [
            r for r in records if (r.condition, r.n_features) == (condition, n_features)
        ]

    def best(self, method: str) -> ModelRecord:
        """The strength with the least error."""
        return min(self.curve(method), key=lambda r: r.error)

    def curve(self, method: str) -> list[ModelRecord]:
        """All strengths of a method."""
        return [r for r in self._own if r.method == method]

    @property
    def true_prior(self) -> ModelRecord:
        """Ridge with the prior of the data."""
        return next(r for r in self.curve("ridge") if r.strength == 1.0)


def by_features(records: Sequence[ModelRecord], condition: str) -> list[ConditionPanel]:
    """The panels of a condition, by number of features."""
    return [ConditionPanel(records, condition, p) for p in N_FEATURES]


def _row(panel: ConditionPanel) -> dict[str, str]:
    ridge, dropout = panel.best("ridge"), panel.best("dropout")
    undropped = panel.best("dropout, undropped")
    return {
        "p": str(panel.n_features),
        "ridge, λ0 = 1": _shown(panel.true_prior),
        "ridge, best λ0": f"{_shown(ridge)} (λ0 = {ridge.strength:.2g})",
        "dropout, best f": f"{_shown(dropout)} (f = {dropout.drop_rate:.3f})",
        "dropout - ridge(1), paired": f"{dropout.gap:+.3f} ± {dropout.gap_se:.3f}",
        "dropout by undropped x'μ, best f": f"{_shown(undropped)} "
        f"(f = {undropped.drop_rate:.3f})",
    }


def _shown(record: ModelRecord) -> str:
    return f"{record.error:.3f} ± {record.error_se:.3f}"


def _default(own: Sequence[ConditionPanel]) -> Claim:
    optimal = all(panel.best("ridge").strength == 1.0 for panel in own)
    worst = max(p.best("dropout").gap / p.true_prior.error for p in own)
    return claim(
        """ridge regression with the correct prior is optimal, and dropout was found to
        perform on par""",
        f"""Ridge is best at λ0 = 1, the true one, in every panel: {verdict(optimal)}.
        Dropout at its best f on par with it (within {_PAR:.0%}):
        {verdict(worst <= _PAR)}; it is at most {worst:.1%} worse.""",
        end=".",
    )


def _junk(own: Sequence[ConditionPanel]) -> Claim:
    wider = [panel for panel in own if panel.n_features > N_FEATURES[0]]
    more = all(p.best(m).strength > 1.0 for p in wider for m in ("ridge", "dropout"))
    apart = [p.best("dropout").error / p.best("ridge").error - 1.0 for p in own]
    par = all(abs(difference) <= _PAR for difference in apart)
    return claim(
        """again performing on par, both ridge regression and dropout could counter this
        by increasing the amount of regularization""",
        f"""Where there are junk features (p > 10) both are best with more
        regularisation than 1: {verdict(more)}. Dropout and ridge, each at its best, on
        par (within {_PAR:.0%}): {verdict(par)}.""",
        end=".",
    )


def _shift(own: Sequence[ConditionPanel]) -> Claim:
    best = [panel.best("dropout") for panel in own]
    robust = all(record.gap < -_CLEAR * record.gap_se for record in best)
    return claim(
        """ridge regression was quite sensitive to this type of model mismatch whereas
        dropout was significantly more robust""",
        f"""Dropout better than ridge with the true prior in every panel, by more than
        {_CLEAR:g} standard errors: {verdict(robust)}. Part of this is that λ0 = 1 is no
        longer a good choice. Against ridge with λ0 chosen anew, dropout's error is
        lower by {", ".join(map(_against_tuned, own))}.""",
        end=".",
    )


def _against_tuned(panel: ConditionPanel) -> str:
    ridge, dropout = panel.best("ridge"), panel.best("dropout")
    error = math.hypot(ridge.error_se, dropout.error_se)
    return f"{ridge.error - dropout.error:.3f} ± {error:.3f} (p = {panel.n_features})"


_TOP = 3.2  # errors above are out of the picture
_BOTTOM = 1.5
_RATES = (0.001, 0.01, 0.1, 0.5, 0.8)
_INK = {"ridge": 1, "dropout": 0}


def _panel(axes: Axes, panel: ConditionPanel) -> None:
    axes.axvline(1.0, color="0.6", linestyle=":", linewidth=1)
    for method, k in _INK.items():
        curve = panel.curve(method)
        axes.errorbar(
            [record.strength for record in curve],
            [record.error for record in curve],
            yerr=[record.error_se for record in curve],
            label=method,
            capsize=1.5,
            **ink(k),
        )
    axes.set_xscale("log")
    axes.set_ylim(_BOTTOM, _TOP)


def _rates_above(axes: Axes) -> None:
    above = axes.twiny()
    above.set_xscale("log")
    above.set_xlim(axes.get_xlim())
    places = [N_ROWS * rate / (1.0 - rate) for rate in _RATES]
    above.set_xticks(places, [f"{rate:g}" for rate in _RATES])
    above.minorticks_off()
    above.grid(visible=False)
    above.spines["top"].set_visible(True)
    above.set_xlabel("drop rate f")


Job = tuple[str, int, int]  # condition, features, data sets


@dataclass(frozen=True)
class Misspecification(Experiment[Job, ModelRecord]):
    """Nine panels, two methods; a job is a panel."""

    name = "misspecification"
    title = "Figure 1b of paper 002: ridge and dropout under misspecification"
    record = ModelRecord

    @property
    def n_sets(self) -> int:
        """Data sets of a panel."""
        return 2_500 if self.quick else 100_000

    def jobs(self, records: Sequence[ModelRecord]) -> list[Job]:
        return list(product(CONDITIONS, N_FEATURES, [self.n_sets]))

    def key(self, record: ModelRecord) -> Job:
        return record.condition, record.n_features, record.n_sets

    def run(self, job: Job) -> list[ModelRecord]:
        own = parts(*job)
        return summarise(own, [run_part(part) for part in own])

    def page(self, records: Sequence[ModelRecord]) -> Iterator[Part]:
        yield flow(f"""Mean squared test error over {records[0].n_sets:,} data sets per
            panel ± standard error. The paper shows curves and gives no numbers.""")
        yield _READING
        for condition, say in zip(CONDITIONS, (_default, _junk, _shift), strict=True):
            own = by_features(records, condition)
            yield f"## {condition.capitalize()}"
            yield table(map(_row, own))
            yield say(own)

    def in_brief(self, records: Sequence[ModelRecord]) -> tuple[str, str]:
        default = by_features(records, CONDITIONS[0])
        worst = max(p.best("dropout").gap / p.true_prior.error for p in default)
        shifted = by_features(records, CONDITIONS[-1])
        gaps = ", ".join(f"{-p.best('dropout').gap:.2f}" for p in shifted)
        paper = """dropout is on par with ridge when the model is right, and more robust
            under covariate shift"""
        ours = f"""at most {worst:.1%} worse than ridge with the true prior when the
            model is right; under covariate shift its squared error is lower by {gaps}
            (p = {", ".join(str(p.n_features) for p in shifted)})"""
        return paper, ours

    def figure(self, records: Sequence[ModelRecord]) -> Figure:
        """Error against regularisation, with its standard error."""
        shape = len(CONDITIONS), len(N_FEATURES)
        figure, grid = panels(*shape, height=5.4, sharex=True, sharey=True)
        for row, condition in zip(grid, CONDITIONS, strict=True):
            for axes, panel in zip(row, by_features(records, condition), strict=True):
                _panel(axes, panel)
            row[0].set_ylabel(f"{condition}\nsquared test error")
        for axes, n_features in zip(grid[0], N_FEATURES, strict=True):
            _rates_above(axes)
            axes.set_title(f"p = {n_features} (n = {N_ROWS})")
        grid[-1, 1].set_xlabel("λ0 of ridge, n f/(1 - f) of dropout")
        legend_below(figure, grid[0, 0], ncols=2)
        return figure
