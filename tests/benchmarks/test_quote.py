"""What README says of speed is what the benchmark stored."""

from benchmarks.quote import ROOT, quoted, stored, stored_errors, table


def test_readme_quotes_the_stored_results():
    text = (ROOT / "README.md").read_text()
    errors = stored_errors()
    assert quoted(text, stored(), errors) == text
    assert table(stored(), errors) in text


def test_ratios_to_an_error_are_a_column_of_their_own():
    errors = {"W2": 17.25}
    lines = table(stored(), errors).splitlines()
    assert lines[0].count("|") == lines[1].count("|") == 8
    assert sum("**17.2x** |" in line for line in lines) == 1
    assert all(line.count("|") == 8 for line in lines if line.startswith("|"))
