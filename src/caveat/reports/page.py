"""The page around the sections: head, verdict, contents, script, data."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

from caveat.reports.glossary import GLOSSARY
from caveat.reports.markup import text
from caveat.reports.section import Section
from caveat.reports.verdict import WORDS, Sentence

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src '{policy}'; img-src data:; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#verdict">To the verdict</a>
<header><p class="kicker">Uncertainty report</p><h1>{title}</h1>
<p class="lead">{lead}</p></header>
<main>
<section id="verdict" class="verdict" aria-labelledby="verdict-h">
<h2 id="verdict-h">The verdict</h2>
<ol>{verdict}</ol>
{tiles}{notes}
</section>
<nav aria-label="Contents"><ul>{contents}</ul></nav>
{sections}
</main>
<footer><details><summary>What the words mean</summary><dl>{glossary}</dl></details>
<p>Made with Caveat. This file is complete in itself: it loads nothing and sends
nothing.</p></footer>
<script type="application/json" id="caveat-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page_of(
    title: str,
    lead: str,
    sentences: Sequence[Sentence],
    tiles: Sequence[tuple[str, str, str]],
    notes: Sequence[str],
    sections: Sequence[Section],
    data: Mapping[str, object],
) -> str:
    """The whole page.

    Parameters
    ----------
    title : str
        Plain text.
    lead : str
        A line below it; HTML.
    sentences : sequence of Sentence
        The verdict.
    tiles : sequence of (str, str, str)
        The most important numbers: value, name and what it is beside; HTML.
    notes : sequence of str
        What readers must know; plain text.
    sections : sequence of Section
        In order.
    data : mapping
        For the script, and for other programs.

    Returns
    -------
    str
    """
    script = _file("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _PAGE.format(
        policy=f"sha256-{digest}",
        style=_file("style.css"),
        script=script,
        title=text(title),
        lead=lead,
        verdict="".join(map(_sentence, sentences)),
        tiles=_tiles(tiles),
        notes=_notes(notes),
        contents="".join(
            f'<li><a href="#{part.identifier}">{text(part.name)}</a></li>'
            for part in sections
        ),
        sections="\n".join(map(_section, sections)),
        glossary="".join(
            f"<dt>{text(name)}</dt><dd>{text(meaning)}</dd>"
            for name, meaning in sorted(GLOSSARY.items(), key=lambda it: it[0].lower())
        ),
        data=block_of(data),
    )


def block_of(data: Mapping[str, object]) -> str:
    """JSON that cannot end the element it stands in."""
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return files("caveat.reports").joinpath(name).read_text(encoding="utf-8")


def _sentence(sentence: Sentence) -> str:
    return (
        f'<li class="{sentence.state}"><span class="state">{WORDS[sentence.state]}'
        f"</span><p>{sentence.html}</p></li>"
    )


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> str:
    parts = "".join(
        f"<div><dt>{name}</dt><dd>{value}<small>{beside}</small></dd></div>"
        for value, name, beside in tiles
    )
    return f'<dl class="tiles">{parts}</dl>'


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    lines = "".join(f"<li>{text(note)}</li>" for note in notes)
    return f'<aside class="notes"><h3>Before you read on</h3><ul>{lines}</ul></aside>'


def _section(part: Section) -> str:
    name = part.identifier
    return (
        f'<section id="{name}" aria-labelledby="{name}-h"><p class="kicker">'
        f'{text(part.name)}</p><h2 id="{name}-h">{text(part.question)}</h2>'
        f'<p class="finding">{part.finding}</p>{part.body}</section>'
    )
