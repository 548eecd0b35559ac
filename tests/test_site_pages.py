"""Every page of the built site in a real Chromium, narrow and wide, light and dark."""

import subprocess
import sys

import pytest

from tests.browser import Visit, chromium, started
from tests.pages import ROOT

pytestmark = pytest.mark.slow
LOOKS = [(360, "light"), (360, "dark"), (1440, "light"), (1440, "dark")]
PALE = """() => {
    const shown = e => e.offsetParent !== null && e.textContent.trim();
    const light = c => {
        const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255).map(
            v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = e => {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (!/, 0\\)$|transparent/.test(c)) return c;
        }
        return "rgb(255, 255, 255)";
    };
    const found = [];
    const said = "p, td, a, pre, code, h1, h2".replace(/(^|, )/g, "$1article ");
    for (const e of document.querySelectorAll(said)) {
        if (!shown(e)) continue;
        const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) found.push([e.tagName, e.textContent.slice(0, 30), ratio]);
    }
    return found.slice(0, 3);
}"""
"""Text of the article with a contrast below 4.5, the limit of WCAG AA."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    chromium()
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-c", "docs", "-W", "--keep-going", "-q"]
    options = ["-D", "plot_gallery=0", "-d", str(folder / "trees"), "-b", "html"]
    place = folder / "html"
    subprocess.run([*command, *options, ".", str(place)], cwd=ROOT, check=True)
    return place


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found


def pages(site):
    found = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    assert len(found) > 80
    return found


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_fit_say_nothing_and_ask_nobody(browser, site, width, scheme):
    """No scrolling to the side, no message, no request elsewhere, no pale text."""
    bad = {}
    for path in pages(site):
        with Visit(browser, path, width=width, scheme=scheme) as visit:
            found = {
                "width": visit.content_width if visit.content_width > width else 0,
                # The theme notes what it does with its sidebar and its mode.
                "messages": [m for m in visit.messages if not m.startswith("[PST]")],
                "foreign": [u for u in visit.requests if not u.startswith("file:")],
                "pale": visit.page.evaluate(PALE),
                "broken": visit.page.evaluate(
                    "() => [...document.images].filter(i => !i.naturalWidth)"
                    ".map(i => i.src)"
                ),
            }
        found["foreign"] = [u for u in found["foreign"] if not u.startswith("data:")]
        if any(found.values()):
            bad[path.relative_to(site).as_posix()] = found
    assert not bad
