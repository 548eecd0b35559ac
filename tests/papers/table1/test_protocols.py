"""Where searches begin, and which protocols there are."""

import pytest

from caveat.errors import ParameterError
from caveat.papers.table1.jobs import Job
from caveat.papers.table1.protocols import PROTOCOLS, VARIANTS, start, variants


def test_a_start_follows_from_the_number_of_rows(real_data):
    job = Job("best", ("2 layers",), "yacht", (0,))
    found = {n: start(job, n, 2) for n in (300, 10_000, 40_000)}
    assert [s.schedule.batch_size for s in found.values()] == [32, 64, 128]
    assert {s.hidden for s in found.values()} == {(50, 50)}
    assert not any(s.input_drop_rate for s in found.values())


def test_every_planned_protocol_has_variants():
    assert set(PROTOCOLS) | {"pbp", "vi"} == set(VARIANTS)
    assert ("no dropout",) in variants("paper", "boston")
    assert ("no dropout",) not in variants("paper", "wine")
    with pytest.raises(ParameterError, match="protocol must be one of"):
        variants("grid", "boston")
