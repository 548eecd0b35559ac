"""The table of claims is that of the stored pages."""

import re

import pytest

from caveat.cli import main
from caveat.errors import DataError
from caveat.papers.ledger import BEGIN, END, claims_table, write_claims
from tests.papers.test_stored import RESULTS


def test_stored_table_is_that_of_the_stored_numbers(real_data):
    text = (RESULTS / "README.md").read_text()
    made = claims_table(RESULTS)
    assert text.split(BEGIN)[1].split(END)[0].strip() == made
    counts = [int(number) for number in re.findall(r"\d+", made.splitlines()[0])]
    assert counts[0] == sum(counts[1:]) == made.count("\n| 00") > 40


def test_a_folder_without_the_marks_is_an_error_of_ours(tmp_path):
    (tmp_path / "README.md").write_text("# Mine\n")
    assert main(["reproduce", "claims", "--output", str(tmp_path)]) != 0
    with pytest.raises(DataError, match="should have the lines"):
        write_claims(tmp_path)
