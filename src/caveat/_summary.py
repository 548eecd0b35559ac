"""What an object says of itself: text at a prompt, a small table in a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True, repr=False)
class TextSummary:
    """A title, and named facts below it; printed as lines, shown as HTML.

    Attributes
    ----------
    title : str
        What it is, in a line.
    facts : mapping from str to str
        In order.
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        width = max(map(len, self.facts), default=0)
        lines = [f"  {name:<{width}}  {fact}" for name, fact in self.facts.items()]
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(fact)}</td></tr>'
            for name, fact in self.facts.items()
        )
        return f"<b>{escape(self.title)}</b><table>{rows}</table>"


class Summarised(ABC):
    """Has a summary, which notebooks show."""

    @abstractmethod
    def summary(self) -> TextSummary:
        """What it is, and its most important numbers.

        Returns
        -------
        TextSummary
            Printed as lines; a table in a notebook.
        """

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
