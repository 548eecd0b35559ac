"""The facts about the UCI sets fit together."""

import pytest

from caveat.data.uci_sets import UCI_SETS, UCISet


def test_names_differ():
    names = [name for spec in UCI_SETS for name in {spec.name, spec.folder}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("spec", UCI_SETS, ids=lambda spec: spec.name)
def test_columns_are_those_of_the_table(spec):
    features = list(spec.feature_columns)
    target = range(spec.n_columns)[spec.target_column]
    assert set(features) < set(range(spec.n_columns))
    assert target not in features
    assert len(set(spec.feature_names)) == len(features)
    assert 0 <= spec.n_test < spec.n_rows
    assert len(spec.sha256) in (0, 64)
    assert spec.is_archive == (spec.sha256 == "")


def test_feature_columns_begin_where_they_are_said_to():
    spec = UCISet("a", "a", 9, 4, ("x", "y"), "t", "", "", first_feature=1)
    assert list(spec.feature_columns) == [1, 2]
