"""The page of figure 1a: weights, and where they are all positive."""

from collections.abc import Iterator, Sequence

from caveat.papers.page import Claim, Part, bullets, claim, flow, table
from caveat.papers.shrinkage.weights import FLIPPED, SCALINGS, AminoAcids, Weight

_STANDARDISING = """The paper does not say whether columns were standardised, nor
whether μ or (1 - f) μ is plotted, and it matters. With λ0 = 0 dropout does not depend
on the scale of the columns, so its weights per standard deviation are the same either
way. On standardised columns, however, (1 - f) μ is exactly ridge regression with
λ0 = n f/(1 - f): only the factor 1/(1 - f) tells μ from it, and a large ridge penalty
is all positive too. On columns in their own units ridge and lasso are other
estimators. As f tends to 1, μ tends to the weights of each column alone, while
(1 - f) μ, which predicts, tends to 0 as ridge does."""

Path = dict[float, list[Weight]]


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


def render(weights: Sequence[Weight], data: AminoAcids) -> Iterator[Part]:
    """The parts of the page."""
    n_rows, n_columns = data.x.shape
    dropout = path(weights, "standardised", "dropout")
    yield flow(f"""QSPR data: n = {n_rows} amino acids, p = {n_columns} covariates, sign
        of {FLIPPED} flipped; columns and response centred; λ0 = 0 in dropout. Weights
        are per standard deviation of the column, ± posterior standard deviation.""")
    yield _STANDARDISING
    yield table(_row(dropout, data, k) for k in range(n_columns))
    yield "## Where all weights are positive, on the grid of the figure"
    yield bullets(_signs(weights))
    yield "## The paper's claims"
    yield _isolation(dropout, data)
    yield _positive(weights, data)


def _row(dropout: Path, data: AminoAcids, k: int) -> dict[str, str]:
    most = dropout[0.9][k]
    return {
        "covariate": data.names[k],
        "correlation": f"{data.correlations[k]:+.2f}",
        "least squares": _shown(dropout[0.0][k]),
        "μ, f = 0.5": _shown(dropout[0.5][k]),
        "μ, f = 0.9": _shown(most),
        "(1 - f) μ, f = 0.9": f"{most.effective:+.2f}",
        "alone, Λ1⁻¹X'y": f"{data.alone[k]:+.2f}",
    }


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
    return f"""never more than {most} of {len(next(iter(points.values())))} positive at
        once; some negative up to {max(negative):.2g} of the penalty that makes all
        zero"""


def _isolation(dropout: Path, data: AminoAcids) -> Claim:
    last = max(dropout)
    pairs = zip(dropout[last], data.alone, strict=True)
    gap = max(abs(w.weight / alone - 1.0) for w, alone in pairs)
    predicting = max(abs(w.effective) for w in dropout[last])
    return claim(
        """dropout shrinks parameters towards Λ1⁻¹X'y, corresponding to the maximum
        likelihood estimate of each weight in isolation of the other""",
        f"""{"Holds" if gap < 0.02 else "Does not hold"} for μ: at f = {last:g} every
        weight is within {gap:.1%} of that limit. It does not hold for the weights that
        predict, (1 - f) μ, of which the largest is then {predicting:.4f}.""",
        lead="",
        end=".",
    )


def _positive(weights: Sequence[Weight], data: AminoAcids) -> Claim:
    dropout = positive_from(path(weights, "standardised", "dropout"))
    ridge, lasso = (
        any(_ever_positive(path(weights, scaling, method)) for scaling in SCALINGS)
        for method in ("ridge", "lasso")
    )
    return claim(
        """in contrast [to] ridge regression and Lasso, dropout shrinks the parameters
        towards an all positive solution""",
        f"""All covariates correlate positively with the response:
        {_yes((data.correlations > 0.0).all())}. Dropout ends all positive:
        {_yes(dropout is not None)}. Ridge is ever all positive: {_yes(ridge)}, and the
        lasso: {_yes(lasso)}. The contrast to ridge is not one of signs: as λ0 grows
        ridge tends to X'y/λ0, which has the signs of the correlations in any units.
        What sets dropout apart is that μ does not vanish at the end of the path;
        (1 - f) μ does.""",
        lead="",
        end=".",
    )


def _ever_positive(points: Path) -> bool:
    return any(all(w.weight > 0.0 for w in own) for own in points.values())


def _yes(is_so: object) -> str:
    return "yes" if is_so else "no"
