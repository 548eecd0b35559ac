"""Which units an input has, and their names."""

import os

import pytest

from caveat.errors import DataError, ParameterError
from caveat.frames import Dialect
from caveat.scoring.units import check_apart, plan_units

SETTINGS = {"output_format": "csv", "seed": 0}


def names(root, **settings):
    plan = plan_units(root, SETTINGS | settings, Dialect())
    return [unit.name for unit in plan.units]


def test_units_are_row_groups_or_files_in_order(tables):
    plan = plan_units(tables, SETTINGS, Dialect())
    assert [(u.source, u.group) for u in plan.units] == [
        *(("a.parquet", group) for group in range(4)),
        ("b.csv", None),
        ("none.csv", None),
        ("year=2024/c.csv.gz", None),
        ("year=2024/d.feather", None),
        ("year=2024/e.jsonl", None),
    ]
    assert plan.n_files == 6 and not plan.broken


def test_names_hold_all_that_answers_depend_on(tables, tmp_path):
    plain = names(tables)
    assert names(tables) == plain and len(set(plain)) == len(plain)
    assert not set(names(tables, seed=1)) & set(plain)
    copy = tmp_path / "elsewhere" / "b.csv"
    copy.parent.mkdir()
    copy.write_bytes((tables / "b.csv").read_bytes())
    assert names(copy.parent) == names(copy) == [n for n in plain if n[0] == "b"]
    with copy.open("a") as file:
        file.write("\n")
    assert names(copy) != names(tables / "b.csv")


def test_a_file_of_an_unknown_kind_is_not_passed_over(tmp_path):
    (tmp_path / "notes.docx").touch()
    with pytest.raises(ParameterError, match=r"notes\.docx must end in"):
        names(tmp_path)


def test_folders_without_tables(tmp_path):
    with pytest.raises(DataError, match="It holds no file"):
        names(tmp_path)
    with pytest.raises(DataError, match="There is none"):
        names(tmp_path / "nowhere")


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_to_folders_are_not_passed_over(tmp_path, tables):
    (tmp_path / "more").symlink_to(tables)
    with pytest.raises(DataError, match="more is a link to a folder"):
        names(tmp_path)


def test_an_unreadable_file_is_broken_and_the_others_are_not(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "b.csv").mkdir()
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "x.csv").write_text("a\n1\n")
    plan = plan_units(tmp_path, SETTINGS, Dialect())
    assert [failed.source for failed in plan.broken] == ["a.parquet", "gone.csv"]
    assert [unit.source for unit in plan.units] == ["x.csv"]


def test_input_and_output_lie_apart(tmp_path):
    for root, output in (("a", "a"), ("a", "a/b"), ("a/b", "a")):
        with pytest.raises(ParameterError, match="must lie apart"):
            check_apart(tmp_path / root, tmp_path / output)
    check_apart(tmp_path / "a", tmp_path / "ab")
