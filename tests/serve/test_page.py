"""The page at /, in a real Chromium."""

import json

import pytest

from tests.browser import Visit, started
from tests.serve.running import serving


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found


def wait_until_done(visit):
    visit.page.wait_for_selector("#figure[data-done=true]", timeout=20_000)


def test_a_row_is_filled_in_and_the_distribution_tightens(browser, address):
    with Visit(browser, f"http://{address}/") as visit:
        visit.page.wait_for_selector("[data-column=size]")
        visit.page.fill("[data-column=size]", "0.25")
        visit.page.select_option("[data-column=kind]", "b")
        visit.page.fill("#tolerance", "0.0002")
        visit.page.click("#go")
        wait_until_done(visit)
        assert visit.page.locator("#figure path.newest").count() == 1
        assert visit.page.locator("#figure path.older").count() >= 3  # 8, 16, 32 …
        assert int(visit.page.get_attribute("#figure", "data-draws")) >= 64
        assert "good enough" in visit.page.inner_text("#status")
        assert "mean" in visit.page.inner_text("#numbers")
        assert visit.foreign_requests == [] and visit.messages == []


def test_a_pasted_row_gives_bars_of_classes(browser, address):
    with Visit(browser, f"http://{address}/") as visit:
        visit.page.wait_for_selector("[data-column=size]")
        visit.page.select_option("#model", "kinds")
        visit.page.fill("#paste", "1.5, a, true")
        visit.page.click("#go")
        wait_until_done(visit)
        assert visit.page.locator("#figure rect.bar").count() == 2
        assert visit.messages == []


def test_a_network_takes_a_list(browser, address):
    with Visit(browser, f"http://{address}/") as visit:
        visit.page.wait_for_selector("[data-column=size]")
        visit.page.select_option("#model", "net")
        visit.page.fill("#paste", json.dumps([0.1, 0.2, 0.3]))
        visit.page.click("#go")
        wait_until_done(visit)
        assert visit.page.locator("#figure rect.bar").count() == 2
        assert visit.messages == []


def test_what_is_wrong_is_said(browser, address):
    with Visit(browser, f"http://{address}/") as visit:
        visit.page.wait_for_selector("[data-column=size]")
        visit.page.fill("[data-column=size]", "<b>many</b>")
        visit.page.click("#go")
        visit.page.wait_for_selector("#status.wrong")
        assert "'size'" in visit.page.inner_text("#status")
        visit.page.fill("#paste", "1, 2")
        visit.page.click("#go")
        visit.page.wait_for_selector("#status:has-text('3 values')")


def test_a_token_can_be_given_and_a_phone_is_wide_enough(browser, served_models):
    own = {"prices": served_models["prices"]}
    with serving(own, tokens=["a" * 32]) as address:
        with Visit(browser, f"http://{address}/", width=390) as visit:
            visit.page.wait_for_selector("#status.wrong")
            visit.page.fill("#token", "a" * 32)
            visit.page.dispatch_event("#token", "change")
            visit.page.wait_for_selector("[data-column=size]")
            visit.page.click("#go")
            wait_until_done(visit)
            assert visit.content_width <= 390
