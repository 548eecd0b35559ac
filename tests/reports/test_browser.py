"""The page in a real Chromium: it asks for nothing, says nothing, and works."""

import numpy as np
import pytest

from caveat.reports import report
from tests.browser import Visit, started
from tests.reports.cases import classification, regression
from tests.reports.test_making import audit_of


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each side, with all sections."""
    folder = tmp_path_factory.mktemp("reports")
    predictive, y, x = regression()
    columns = {f"a rather long name of column {k}": x[:, k] for k in range(3)}
    columns["kind"] = np.where(x[:, 0] > 0, "<b>north</b>", "south " * 20)
    ood = np.abs(x).sum(1)
    made = report(predictive, y, x=columns, ood=ood, audit=audit_of(), title="W" * 80)
    labels, z, x = classification()
    names = ["ant", "bee", "a class with quite a long name " * 3, "dog"]
    other = report(labels, np.array(names)[z], x=x, ood=labels[:90], classes=names)
    return {
        "regression": made.save(folder / "r.html"),
        "classification": other.save(folder / "c.html"),
    }


@pytest.fixture(params=["regression", "classification"])
def source(request, pages):
    return pages[request.param]


def check_quiet(visit):
    assert visit.messages == [] and visit.foreign_requests == []


OVERLAPS = """() => {
  const bad = [];
  document.querySelectorAll("svg.chart").forEach((chart) => {
    if (!chart.getBoundingClientRect().width) return;
    const boxes = [...chart.querySelectorAll(".axes text:not(.label)")]
      .map((text) => text.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      const across = a.left < b.right && b.left < a.right;
      if (across && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(chart.id);
    }));
  });
  return bad;
}"""


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scripts", [True, False])
def test_it_shows_and_asks_for_nothing(browser, source, width, scripts):
    with Visit(browser, source, width=width, scripts=scripts) as visit:
        check_quiet(visit)
        page = visit.page
        assert visit.content_width == width
        if scripts:
            assert page.evaluate(OVERLAPS) == []
        box = page.locator("#chart-deferral").bounding_box()
        assert 0 <= box["x"] and box["x"] + box["width"] <= width
        assert page.locator("#defer").is_visible() == scripts
        shown = page.locator("#intervals figure:visible").count()
        assert shown == 2 if scripts else shown > 2
        assert page.locator("#verdict ol li").count() == 3


def test_without_scripts_values_and_meanings_are_in_titles(browser, source):
    with Visit(browser, source, scripts=False) as visit:
        page = visit.page
        hits = page.locator("#chart-deferral .hits path title")
        assert hits.count() == 101 and "handed on" in hits.nth(20).inner_html()
        for word in page.locator("main abbr").all()[:5]:
            assert len(word.get_attribute("title")) > 20
        page.locator("#verdict abbr").first.focus()
        shown = "getComputedStyle(document.activeElement, '::after').content"
        assert len(page.evaluate(shown)) > 20  # the meaning, by the style sheet alone


@pytest.mark.parametrize("way", ["sandbox", "notebook"])
def test_it_works_in_a_sandboxed_frame(browser, pages, tmp_path, way):
    html = pages["regression"].read_text()
    if way == "notebook":
        predictive, y, _ = regression()
        frame = report(predictive, y)._repr_html_()
    else:
        (tmp_path / "inner.html").write_text(html)
        frame = '<iframe sandbox="allow-scripts" src="inner.html" width=900></iframe>'
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!DOCTYPE html><title>o</title>{frame}")
    with Visit(browser, outer) as visit:
        inner = visit.page.frame_locator("iframe")
        inner.locator("#defer").fill("40")
        assert "20.0 %" in inner.locator("#defer-share").inner_text()
        inner.locator('nav a[href="#making"]').click()
        inner.locator("#making h2").wait_for(state="visible")
        place = "e => e.getBoundingClientRect().top"
        assert inner.locator("#making").evaluate(place) < 900
        check_quiet(visit)


def test_the_slider_moves_along_the_curve(browser, pages):
    with Visit(browser, pages["regression"]) as visit:
        page = visit.page
        marker = page.locator("#chart-deferral .marker")
        before = marker.get_attribute("transform")
        slider = page.locator("#defer")
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#defer-share").inner_text() == "10.5 %"
        page.keyboard.press("End")
        assert page.locator("#defer-share").inner_text() == "50.0 %"
        said = page.locator("#defer-text").inner_text()
        assert said.startswith("150 rows to a person;")
        assert marker.get_attribute("transform") != before
        ends = page.locator("#chart-deferral .now").bounding_box()
        curve = page.locator("#chart-deferral .line").bounding_box()
        middle = ends["x"] + ends["width"] / 2
        assert abs(middle - curve["x"] - curve["width"]) < 3
        check_quiet(visit)


def column(page, number):
    place = f"#people-table tbody tr td:nth-child({number + 1})"
    return page.locator(place).evaluate_all("cells => cells.map(c => c.dataset.v)")


def test_rows_can_be_sorted_by_mouse_and_keys(browser, pages):
    with Visit(browser, pages["regression"]) as visit:
        page = visit.page
        heads = page.locator("#people-table thead th")
        names = [h.inner_text().split("\n")[0].strip() for h in heads.all()]
        number = next(k for k, n in enumerate(names) if n in ("spread", "entropy"))
        button = heads.nth(number).locator("button")
        button.click()
        values = [float(v) for v in column(page, number)]
        assert values == sorted(values, reverse=True) and len(values) == 50
        assert heads.nth(number).get_attribute("aria-sort") == "descending"
        button.focus()
        page.keyboard.press("Enter")
        assert [float(v) for v in column(page, number)] == sorted(values)
        words = names.index("why")
        heads.nth(words).locator("button").click()
        assert column(page, words) == sorted(column(page, words), reverse=True)
        assert page.locator("#people-table th[aria-sort]").count() == 1
        check_quiet(visit)


def test_values_show_under_the_pointer_and_at_the_keys(browser, pages):
    with Visit(browser, pages["regression"]) as visit:
        page = visit.page
        page.locator("#chart-deferral .hits path").nth(30).hover()
        assert "handed on" in page.locator(".tip").inner_text()
        page.mouse.move(0, 0)
        assert page.locator(".tip").is_hidden()
        page.locator("#chart-error").focus()
        page.keyboard.press("ArrowRight")
        assert "rows with" in page.locator(".tip").inner_text()
        page.keyboard.press("Escape")
        assert page.locator(".tip").is_hidden()
        check_quiet(visit)


def test_another_feature_can_be_chosen(browser, pages):
    with Visit(browser, pages["regression"]) as visit:
        page = visit.page
        assert page.locator("#chart-along-0").is_visible()
        page.locator("#along").select_option("1")
        assert page.locator("#chart-along-1").is_visible()
        assert page.locator("#chart-along-0").is_hidden()
        assert page.locator("#chart-sorted").is_visible()


CONTRAST = """() => {
  const bright = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const worst = {};
  document.querySelectorAll("body *").forEach((node) => {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    if (!own || ["SCRIPT", "STYLE", "title", "desc"].includes(node.tagName)) return;
    const style = getComputedStyle(node);
    const ink = node.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const pair = [bright(ink), bright(behind(node))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) worst[node.tagName + "." + node.getAttribute("class")] = ratio;
  });
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(browser, source, scheme):
    with Visit(browser, source, scheme=scheme) as visit:
        assert visit.page.evaluate(CONTRAST) == {}
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        dark = visit.page.evaluate(paper) == "rgb(18, 22, 26)"
        assert dark == (scheme == "dark")


def test_everything_is_reached_by_tab_and_seen_to_be(browser, pages):
    with Visit(browser, pages["regression"]) as visit:
        page = visit.page
        seen = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.id"))
            seen.add(page.evaluate("document.activeElement.tagName"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        assert {"defer", "along", "chart-coverage", "chart-sorted"} <= seen
        assert {"A", "ABBR", "svg", "INPUT", "SELECT", "DIV"} <= seen
