"""Running, going on, and drawing again."""

import matplotlib
import pytest

from caveat.errors import CaveatError, DataError
from caveat.papers.experiment import Experiment
from caveat.papers.page import verdict
from caveat.papers.records import read_records, write_records
from caveat.papers.runner import complete, regenerate, reproduce
from tests.papers.squares import Brief, Forgetful, Square, Squares


@pytest.fixture
def ran(monkeypatch):
    found = []
    monkeypatch.setattr(Squares, "ran", found)
    return found


def numbers(path):
    return [record.number for record in read_records(path, Square)]


@pytest.mark.parametrize("n_workers", [1, 2])
def test_jobs_that_follow_from_records_are_run_after_them(tmp_path, n_workers):
    assert complete(Squares(tmp_path), n_workers=n_workers) == 4
    assert numbers(tmp_path / "squares.csv") == [1, 2, 3, 6]


def test_what_is_known_is_kept_in_the_order_of_the_jobs(tmp_path, ran):
    path = tmp_path / "squares.csv"
    kept = Square(2, -4.0)  # not what a run would give
    write_records(path, [Square(9, 81.0), kept])
    complete(Squares(tmp_path), n_workers=1)
    assert ran == [1, 3, 6]
    found = read_records(path, Square)
    assert [r.number for r in found] == [1, 2, 3, 6] and found[1] == kept


def test_what_was_done_before_an_error_is_on_disk(tmp_path):
    with pytest.raises(ValueError, match="negative"):
        complete(Squares(tmp_path, numbers=(4, -1, 5)), n_workers=1)
    assert numbers(tmp_path / "squares.csv") == [4]


def test_a_job_without_its_records_is_an_error_and_not_run_for_ever(tmp_path):
    with pytest.raises(CaveatError, match="should leave records with the keys"):
        complete(Forgetful(tmp_path), n_workers=1)


def test_what_takes_seconds_is_run_again_and_here(tmp_path, ran):
    for _ in range(2):
        reproduce(Brief(tmp_path), n_workers=2)
    assert ran == [1, 2, 3, 6] * 2


def test_a_second_call_only_writes_page_and_figure(tmp_path, ran):
    page = reproduce(Squares(tmp_path), n_workers=1)
    assert (tmp_path / "squares.md").read_text() == page
    old = page.replace(page.split(", ")[1][:10], "2020-02-02")
    (tmp_path / "squares.md").write_text(old)
    (tmp_path / "squares.png").unlink()
    assert reproduce(Squares(tmp_path), n_workers=1) == old  # the day of the numbers
    assert ran == [1, 2, 3, 6]
    assert (tmp_path / "squares.png").exists()


def test_the_page_is_made_from_numbers_as_they_are_in_the_file(tmp_path):
    page = reproduce(Squares(tmp_path), n_workers=1)
    assert "\n\n1.0, 4.0, 9.0, 36.0\n\n" in page  # six digits
    assert page.endswith('The paper: "Squares are positive."\n\n**holds**\n')


def test_a_page_says_what_made_it(tmp_path):
    page = reproduce(Squares(tmp_path, quick=True), n_workers=1)
    assert page.startswith("# Squares\n\nMade by `caveat reproduce squares --quick`, ")
    assert "smoke test" in page
    assert "smoke test" not in reproduce(Squares(tmp_path), n_workers=1)


def test_a_smoke_test_judges_nothing(tmp_path):
    page = reproduce(Squares(tmp_path, quick=True), n_workers=1)
    assert page.endswith('The paper: "Squares are positive."\n\n**not judged**\n')
    assert verdict(True) == "**holds**"  # elsewhere nothing has changed


def test_nothing_is_drawn_from_half_of_the_records(tmp_path):
    write_records(tmp_path / "squares.csv", [Square(1, 1.0), Square(3, 9.0)])
    with pytest.raises(DataError, match="it lacks 1, the first is 2"):
        regenerate(Squares(tmp_path))


def test_figures_are_drawn_in_the_style_of_the_house(tmp_path, monkeypatch):
    sizes = []
    draw = Squares.figure
    monkeypatch.setattr(
        Squares,
        "figure",
        lambda self, records: (
            sizes.append(matplotlib.rcParams["font.size"]) or draw(self, records)
        ),
    )
    reproduce(Squares(tmp_path), n_workers=1)
    assert sizes == [8.0] != [matplotlib.rcParams["font.size"]]


def test_other_files_come_before_the_figure(tmp_path, monkeypatch):
    order = []
    for name in ("extras", "figure"):
        own = getattr(Squares, name)
        monkeypatch.setattr(
            Squares, name, lambda s, r, n=name, f=own: order.append(n) or f(s, r)
        )
    assert Squares.extras is not Experiment.extras
    reproduce(Squares(tmp_path), n_workers=1)
    assert order == ["extras", "figure"]
