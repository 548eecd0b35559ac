"""The page of figure 1a: weights, and where they are all positive."""

from collections.abc import Iterator, Sequence
from typing import Any

from caveat.papers.output import markdown_table
from caveat.papers.shrinkage.weights import (
    FLIPPED,
    SCALINGS,
    AminoAcids,
    Weight,
)

_TITLE = "Figure 1a of paper 002: dropout, ridge and lasso as shrinkage"
_WORDS = (
    "dropout shrinks parameters towards Λ1⁻¹X'y, corresponding to the maximum "
    "likelihood estimate of each weight in isolation of the other",
    "in contrast [to] ridge regression and Lasso, dropout shrinks the parameters "
    "towards an all positive solution",
)
_STANDARDISING = """The paper does not say whether columns were standardised, nor
whether μ or (1 - f) μ is plotted, and it matters. With λ0 = 0 dropout does not depend
on the scale of the columns, so its weights per standard deviation are the same either
way. On standardised columns, however, (1 - f) μ is exactly ridge regression with
λ0 = n f/(1 - f): only the factor 1/(1 - f) tells μ from it, and a large ridge penalty
is all positive too. On columns in their own units ridge and lasso are other
estimators. As f tends to 1, μ tends to the weights of each column alone, while
(1 - f) μ, which predicts, tends to 0 as ridge does."""

Path = dict[float, list[Weight]]


def render(weights: Sequence[Weight], data: AminoAcids) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    weights : sequence of Weight
        All paths.
    data : AminoAcids
        What they were fitted to.

    Yields
    ------
    str
        The title, then Markdown.
    """
    n_rows, n_columns = data.x.shape
    yield _TITLE
    yield (
        f"QSPR data: n = {n_rows} amino acids, p = {n_columns} covariates, sign of "
        f"{FLIPPED} flipped; columns and response centred; λ0 = 0 in dropout. Weights "
        "are per standard deviation of the column, ± posterior standard deviation."
    )
    yield _STANDARDISING
    yield _table(weights, data)
    yield "## Where all weights are positive, on the grid of the figure"
    yield "\n".join(f"- {line}" for line in _signs(weights))
    yield "## The paper's claims"
    yield f'"{_WORDS[0]}".'
    yield _first_claim(weights, data)
    yield f'"{_WORDS[1]}".'
    yield _second_claim(weights, data)


def path(weights: Sequence[Weight], scaling: str, method: str) -> Path:
    """The weights of one path by their position."""
    found: Path = {}
    for weight in weights:
        if (weight.scaling, weight.method) == (scaling, method):
            found.setdefault(weight.position, []).append(weight)
    return found


def positive_from(points: Path) -> Weight | None:
    """Where a path becomes all positive and stays so; None if it never does."""
    first: Weight | None = None
    for position in sorted(points, reverse=True):
        if not all(w.weight > 0.0 for w in points[position]):
            break
        first = points[position][0]
    return first


def _table(weights: Sequence[Weight], data: AminoAcids) -> str:
    dropout = path(weights, "standardised", "dropout")
    half, most = dropout[0.5], dropout[0.9]
    head = ["covariate", "correlation", "least squares", "μ, f = 0.5", "μ, f = 0.9"]
    head += ["(1 - f) μ, f = 0.9", "alone, Λ1⁻¹X'y"]
    rows = [
        [
            name,
            f"{data.correlations[k]:+.2f}",
            *(_shown(points[k]) for points in (dropout[0.0], half, most)),
            f"{most[k].effective:+.2f}",
            f"{data.alone[k]:+.2f}",
        ]
        for k, name in enumerate(data.names)
    ]
    return markdown_table(head, rows)


def _shown(weight: Weight) -> str:
    return f"{weight.weight:+.2f} ± {weight.posterior_sd:.2f}"


def _signs(weights: Sequence[Weight]) -> Iterator[str]:
    found = positive_from(path(weights, "standardised", "dropout"))
    yield f"dropout, any scaling: {_from('f', found)} (μ and (1 - f) μ alike)"
    for scaling in SCALINGS:
        found = positive_from(path(weights, scaling, "ridge"))
        yield f"ridge, {scaling} columns: {_from('λ0', found)}{_as_rate(found)}"
    for scaling in SCALINGS:
        yield f"lasso, {scaling} columns: {_of_lasso(path(weights, scaling, 'lasso'))}"


def _from(symbol: str, found: Weight | None) -> str:
    if found is None:
        return "nowhere on the grid"
    return f"from {symbol} = {found.strength:.3g} on"


def _as_rate(found: Weight | None) -> str:
    if found is None or found.scaling != "standardised":
        return ""
    return f"; {found.strength:.3g} is n f/(1 - f) for f = {found.position:.3g}"


def _of_lasso(points: Path) -> str:
    negative = [p for p, own in points.items() if any(w.weight < 0.0 for w in own)]
    most = max(sum(w.weight > 0.0 for w in own) for own in points.values())
    return (
        f"never more than {most} of {len(next(iter(points.values())))} positive at "
        f"once; some negative up to {max(negative):.2g} of the penalty that makes all "
        "zero"
    )


def _first_claim(weights: Sequence[Weight], data: AminoAcids) -> str:
    points = path(weights, "standardised", "dropout")
    last = max(points)
    gap = max(
        abs(w.weight / alone - 1.0)
        for w, alone in zip(points[last], data.alone, strict=True)
    )
    predicting = max(abs(w.effective) for w in points[last])
    return (
        f"{_holds(gap < 0.02)} for μ: at f = {last:g} every weight is within "
        f"{gap:.1%} of that limit. It does not hold for the weights that predict, "
        f"(1 - f) μ, of which the largest is then {predicting:.4f}."
    )


def _second_claim(weights: Sequence[Weight], data: AminoAcids) -> str:
    dropout = positive_from(path(weights, "standardised", "dropout"))
    ridge, lasso = (
        any(_ever_positive(path(weights, scaling, method)) for scaling in SCALINGS)
        for method in ("ridge", "lasso")
    )
    return (
        "All covariates correlate positively with the response: "
        f"{_yes((data.correlations > 0.0).all())}. Dropout ends all positive: "
        f"{_yes(dropout is not None)}. Ridge is ever all positive: {_yes(ridge)}, and "
        f"the lasso: {_yes(lasso)}. The contrast to ridge is not one of signs: as λ0 "
        "grows ridge tends to X'y/λ0, which has the signs of the correlations in any "
        "units. What sets dropout apart is that μ does not vanish at the end of the "
        "path; (1 - f) μ does."
    )


def _ever_positive(points: Path) -> bool:
    return any(all(w.weight > 0.0 for w in own) for own in points.values())


def _yes(is_so: Any) -> str:
    return "yes" if is_so else "no"


def _holds(is_so: bool) -> str:
    return "Holds" if is_so else "Does not hold"
