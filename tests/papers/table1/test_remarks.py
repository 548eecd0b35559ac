"""What the pages say beside their tables."""

import pytest

from caveat.papers.page import judging
from caveat.papers.table1 import remarks
from caveat.papers.table1.comparison import as_standard_errors, rows
from tests.papers.table1.records import a_record


def flagship(**changes):
    own = {"protocol": "flagship", "variant": "5 networks", "n_networks": 5}
    return [
        a_record(split=k, rmse=2.5 + 0.1 * (k % 2), log_likelihood=-2.0 - 0.01 * k)
        .__class__(**(vars(a_record(split=k)) | own | {
            "rmse": 2.5 + 0.1 * (k % 2),
            "log_likelihood": -2.0 - 0.01 * k,
        } | changes))
        for k in range(20)
    ]  # fmt: skip


def test_lead_says_on_how_many_sets_we_are_ahead(real_data):
    line = remarks.lead("flagship", rows(flagship()))
    assert line.startswith("Paper: its column for dropout; ours (5 networks)")
    assert "on 1 of 1 sets: holds" in line
    assert "ahead on 1 of 1 sets, and RMSE no worse on 1 of 1." in line
    worse = remarks.lead("flagship", rows(flagship(rmse=9.0)))
    assert "does not hold" in worse and "RMSE no worse on 0 of 1." in worse
    with judging(False):
        assert "holds" not in remarks.lead("flagship", rows(flagship()))


def test_lead_of_the_paper_pairs_splits(real_data):
    far = [a_record(split=k, rmse=9.0 + 0.1 * (k % 2)) for k in range(20)]
    assert "that it is found again: does not hold." in remarks.lead("paper", rows(far))


@pytest.mark.parametrize("metric", ["rmse", "ll"])
def test_spreads_read_as_standard_errors_are_wider(metric, real_data):
    before = rows(flagship())
    (row,) = as_standard_errors(before, "Deep Ensembles")
    wide = row.published["Deep Ensembles"][metric]
    assert wide.error == pytest.approx({"rmse": 1.0, "ll": 0.25}[metric], rel=1e-3)
    assert row.published["PBP"] == before[0].published["PBP"]


def test_twins_are_counted_and_scored(real_data):
    wine = flagship(dataset="wine", ll_twins=-0.25, ll_others=-0.75)
    (line,) = remarks.twins(wine)
    assert "wine 27 % (log-likelihood -0.25 on them, -0.75 elsewhere)" in line
    (line,) = remarks.twins(flagship(dataset="wine"))
    assert "wine 27 %." in line
    assert list(remarks.twins(flagship())) == []


def test_pages_say_how_settings_were_chosen(real_data):
    (old,) = remarks.search_note("flagship", flagship())
    assert "earlier search" in old and "test rows" not in old
    (old,) = remarks.search_note("best", flagship())
    assert "had seen test rows" in old
    (new,) = remarks.search_note("flagship", flagship(learning_rate=0.005))
    assert "folds of its training rows" in new
    assert "some of which are test rows of other splits" in new  # for beta
    (new,) = remarks.search_note("best", flagship(learning_rate=0.005))
    assert "test rows" not in new
    assert list(remarks.search_note("paper", flagship())) == []


def test_year_has_the_published_numbers(real_data):
    assert "8.849 / -3.588" in remarks.year()


def test_what_could_not_be_checked_is_named():
    (line,) = remarks.not_compared("flagship")
    assert "Bui et al. 2016" in line and "could not be had" in line
    assert list(remarks.not_compared("paper")) == []
