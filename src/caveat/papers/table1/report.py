"""The rendered table: Markdown with our numbers beside the published ones."""

from collections.abc import Sequence
from datetime import UTC, datetime

from caveat.papers.page import markdown_table
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


def render(records: Sequence[Record], command: str) -> str:
    """A page for one protocol.

    Parameters
    ----------
    records : sequence of Record
        Of one protocol.
    command : str
        That made them, for the head of the page.

    Returns
    -------
    str
        Markdown.
    """
    table = rows(records)
    day = datetime.now(UTC).date().isoformat()
    parts = [
        f"# Table 1 of paper 001, protocol `{records[0].protocol}`",
        f"Made by `{command}`, {day}. Means over splits ± standard error, in the "
        "units of y; log-likelihood in nats, higher is better. After a published "
        "number: + we win, = tie within one combined standard error, - we lose. The "
        "authors' results are from their logs; others are as printed, and count with "
        "an error of 0.005 more for their rounding. Spreads of Deep Ensembles are read "
        "as standard deviations.",
    ]
    for variant in dict.fromkeys(row.variant for row in table):
        own = [row for row in table if row.variant == variant]
        used = [r for r in records if r.variant == variant]
        parts += [f"## {variant}", _settings(used)]
        parts += [_table(own, metric) for metric in METRICS]
        parts += [_paired(own, used[0].protocol), _notes(own), _averaging(used)]
    if all(record.dataset != "year" for record in records):
        parts.append("YearPredictionMSD (`--sets year`): not run.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _settings(records: Sequence[Record]) -> str:
    networks, draws = records[0].n_networks, records[0].n_draws
    epochs = sorted({r.epochs for r in records})
    span = f"{epochs[0]}" if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
    return (
        f"{records[0].hidden_layers} hidden layer(s), {networks} network(s), "
        f"{draws:,} draws each, {span} epochs."
    )


def _table(table: Sequence[Row], metric: str) -> str:
    head = ["set", "splits", f"ours, {METRICS[metric]}", *OPPONENTS, "s/split"]
    lines = []
    for row in table:
        cells = [row.dataset, str(row.n_splits), _shown(row, metric, row.ours[metric])]
        cells += [_against(row, metric, name) for name in OPPONENTS]
        lines.append([*cells, f"{row.seconds:.1f}"])
    return markdown_table(head, lines) + "\n\n" + _count(table, metric)


def _against(row: Row, metric: str, opponent: str) -> str:
    value = row.published.get(opponent, {}).get(metric)
    if value is None:
        return ""
    mark = _MARKS[verdict(metric, row.ours[metric], value)]
    return f"{_shown(row, metric, value)} {mark}"


def _shown(row: Row, metric: str, value: Value) -> str:
    digits = _DIGITS[metric].get(row.dataset, 3)
    return f"{value.mean:.{digits}f} ± {value.error:.{digits}f}"


def _count(table: Sequence[Row], metric: str) -> str:
    parts = []
    for name in OPPONENTS:
        found = [
            verdict(metric, row.ours[metric], row.published[name][metric])
            for row in table
            if metric in row.published.get(name, {})
        ]
        counts = [found.count(kind) for kind in _MARKS]
        parts.append(f"{name} {counts[0]}/{counts[1]}/{counts[2]}")
    return f"{METRICS[metric]}, win/tie/lose against " + ", ".join(parts) + "."


def _paired(table: Sequence[Row], protocol: str) -> str:
    against = PAIRED_WITH.get((protocol, table[0].variant))
    if against is None:
        return ""
    head = ["set", "RMSE", "in s.e.", "log-likelihood", "in s.e."]
    lines = []
    for row in table:
        cells = [row.dataset]
        for metric in METRICS:
            if metric in row.paired:
                gap = row.paired[metric]
                digits = _DIGITS[metric].get(row.dataset, 3)
                shown = f"{gap.mean:+.{digits}f} ± {gap.error:.{digits}f}"
                cells += [shown, f"{paired_z(gap):+.1f}"]
        lines.append(cells)
    title = f"Ours minus the authors' result on the same split (`{against}`):"
    return title + "\n\n" + markdown_table(head, lines)


def _notes(table: Sequence[Row]) -> str:
    free = [row for row in table if row.gains_by_precision]
    if not free:
        return ""
    named = ", ".join(f"{row.dataset} (at most {row.cap:.2f})" for row in free)
    return (
        "Gains in log-likelihood that come from a free precision and not from the "
        f"network alone: {named}. There even a perfect network could not have scored "
        "more with the precisions of the 2018 grid, log p <= log(tau / 2 pi) / 2."
    )


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
