"""The parts of a page: sections, and charts with what is said about them."""

from dataclasses import dataclass
from typing import final

from caveat.reports.svg import Chart


@final
@dataclass(frozen=True)
class Section:
    """A part of a report that answers one question.

    Attributes
    ----------
    identifier : str
        Its id in the page.
    name : str
        Its subject, in a word or two.
    question : str
        What it answers, as a reader would ask; plain text.
    finding : str
        The answer in a sentence or two; HTML.
    body : str
        Charts and tables; HTML.
    """

    identifier: str
    name: str
    question: str
    finding: str
    body: str


def figure(chart: Chart, signs: str, caption: str, kind: str = "") -> str:
    """A chart with its legend and a sentence that says how to read it.

    Parameters
    ----------
    chart : Chart
        With all its marks.
    signs : str
        Its legend, of :func:`caveat.reports.svg.legend`; may be empty.
    caption : str
        HTML.
    kind : str
        Of the figure in the style sheet.

    Returns
    -------
    str
    """
    mark = f' class="{kind}"' if kind else ""
    return (
        f"<figure{mark}>{chart.render()}{signs}<figcaption>{caption}</figcaption>"
        f"</figure>"
    )


def grid(*parts: str) -> str:
    """Parts beside each other where there is room, else below each other."""
    return f'<div class="grid">{"".join(parts)}</div>'
