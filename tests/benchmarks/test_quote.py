"""What README says of speed is what the benchmark stored."""

from benchmarks.quote import ROOT, quoted, stored, table


def test_readme_quotes_the_stored_results():
    text = (ROOT / "README.md").read_text()
    assert quoted(text, stored()) == text
    assert table(stored()) in text
