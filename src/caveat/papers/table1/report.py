"""The rendered table: Markdown with our numbers beside the published ones."""

from collections.abc import Iterator, Sequence

from caveat.papers.page import Part, flow, markdown_table, table
from caveat.papers.table1.comparison import (
    METRICS,
    OPPONENTS,
    PAIRED_WITH,
    Row,
    Value,
    paired_z,
    rows,
    verdict,
)
from caveat.papers.table1.records import Record

_MARKS = {"win": "+", "tie": "=", "lose": "-"}
_DIGITS = {"rmse": {"naval": 5, "kin8nm": 4}, "ll": {}}


def render(records: Sequence[Record]) -> Iterator[Part]:
    """The parts of the page."""
    all_rows = rows(records)
    yield flow("""Means over splits ± standard error, in the units of y; log-likelihood
        in nats, higher is better. After a published number: + we win, = tie within one
        combined standard error, - we lose. The authors' results are from their logs;
        others are as printed, and count with an error of 0.005 more for their rounding.
        Spreads of Deep Ensembles are read as standard deviations.""")
    for variant in dict.fromkeys(row.variant for row in all_rows):
        own = [row for row in all_rows if row.variant == variant]
        used = [r for r in records if r.variant == variant]
        yield f"## {variant}"
        yield _settings(used)
        for metric in METRICS:
            yield table(_row(row, metric) for row in own)
            yield _count(own, metric)
        yield from _paired(own, used[0].protocol)
        yield from _notes(own)
        yield _averaging(used)
    if all(record.dataset != "year" for record in records):
        yield "YearPredictionMSD (`--sets year`): not run."


def _settings(records: Sequence[Record]) -> str:
    networks, draws = records[0].n_networks, records[0].n_draws
    epochs = sorted({r.epochs for r in records})
    span = f"{epochs[0]}" if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
    return flow(f"""{records[0].hidden_layers} hidden layer(s), {networks} network(s),
        {draws:,} draws each, {span} epochs.""")


def _row(row: Row, metric: str) -> dict[str, str]:
    return {
        "set": row.dataset,
        "splits": str(row.n_splits),
        f"ours, {METRICS[metric]}": _shown(row, metric, row.ours[metric]),
        **{name: _against(row, metric, name) for name in OPPONENTS},
        "s/split": f"{row.seconds:.1f}",
    }


def _against(row: Row, metric: str, opponent: str) -> str:
    value = row.published.get(opponent, {}).get(metric)
    if value is None:
        return ""
    mark = _MARKS[verdict(metric, row.ours[metric], value)]
    return f"{_shown(row, metric, value)} {mark}"


def _shown(row: Row, metric: str, value: Value) -> str:
    digits = _DIGITS[metric].get(row.dataset, 3)
    return f"{value.mean:.{digits}f} ± {value.error:.{digits}f}"


def _count(own: Sequence[Row], metric: str) -> str:
    parts = []
    for name in OPPONENTS:
        found = [
            verdict(metric, row.ours[metric], row.published[name][metric])
            for row in own
            if metric in row.published.get(name, {})
        ]
        counts = [found.count(kind) for kind in _MARKS]
        parts.append(f"{name} {counts[0]}/{counts[1]}/{counts[2]}")
    return f"{METRICS[metric]}, win/tie/lose against " + ", ".join(parts) + "."


def _paired(own: Sequence[Row], protocol: str) -> Iterator[str]:
    against = PAIRED_WITH.get((protocol, own[0].variant))
    if against is None:
        return
    yield f"Ours minus the authors' result on the same split (`{against}`):"
    head = ["set", "RMSE", "in s.e.", "log-likelihood", "in s.e."]
    yield markdown_table(head, [[row.dataset, *_differences(row)] for row in own])


def _differences(row: Row) -> Iterator[str]:
    for metric, gap in row.paired.items():
        digits = _DIGITS[metric].get(row.dataset, 3)
        yield f"{gap.mean:+.{digits}f} ± {gap.error:.{digits}f}"
        yield f"{paired_z(gap):+.1f}"


def _notes(own: Sequence[Row]) -> Iterator[str]:
    free = [row for row in own if row.gains_by_precision]
    if free:
        named = ", ".join(f"{row.dataset} (at most {row.cap:.2f})" for row in free)
        yield flow(f"""Gains in log-likelihood that come from a free precision and not
            from the network alone: {named}. There even a perfect network could not have
            scored more with the precisions of the 2018 grid, log p <= log(tau / 2 pi) /
            2.""")


def _averaging(records: Sequence[Record]) -> str:
    """MC averaging against weight averaging."""
    lines = ["RMSE by averaging passes / weights (standard dropout):"]
    for name in dict.fromkeys(r.dataset for r in records):
        own = [r for r in records if r.dataset == name]
        digits = _DIGITS["rmse"].get(name, 3)
        passes = sum(r.rmse for r in own) / len(own)
        weights = sum(r.rmse_weight_averaging for r in own) / len(own)
        lines.append(f"{name} {passes:.{digits}f} / {weights:.{digits}f}")
    return lines[0] + " " + ", ".join(lines[1:]) + "."
