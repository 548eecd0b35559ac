"""The page as a file and in a notebook."""

from html.parser import HTMLParser

import pytest

from caveat.errors import DataError
from caveat.reports import HTMLReport

MADE = HTMLReport(
    'A "title"', "<!DOCTYPE html><p>ä “quoted” & <b>bold</b></p>", ("One.",)
)


def test_it_is_saved_whole(tmp_path):
    place = MADE.save(tmp_path / "r.html")
    assert place.read_text(encoding="utf-8") == MADE.html
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    MADE.save(str(place))  # again, over it


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    place = tmp_path / "r.html"
    place.write_text("old")
    broken = HTMLReport("t", "\ud800", ())  # cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        broken.save(place)
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="a folder that exists"):
        MADE.save(tmp_path / "none" / "r.html")


class Frames(HTMLParser):
    def __init__(self):
        super().__init__()
        self.frames = []

    def handle_starttag(self, tag, attrs):
        self.frames.append((tag, dict(attrs)))


def test_a_notebook_shows_it_in_a_closed_frame():
    parser = Frames()
    parser.feed(MADE._repr_html_())
    ((tag, attrs),) = parser.frames
    assert tag == "iframe" and attrs["sandbox"] == "allow-scripts"
    assert attrs["srcdoc"] == MADE.html and attrs["title"] == MADE.title


def test_it_prints_its_verdict():
    assert str(MADE) == 'A "title"\n  One.'
    assert "save('report.html')" in repr(MADE)
