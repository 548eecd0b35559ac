"""Cohorts: chunks of steps, members that end at different times."""

import numpy as np
import torch

from caveat.training import Member, NetworkSpec, Rows, Schedule
from caveat.training.cohort import Cohort

X = np.linspace(-1, 1, 40)[:, None]
DATA = [Rows.of(X, np.sin(X)), Rows.of(X[:12], np.cos(X[:12]))]
SPEC = NetworkSpec((4,), schedule=Schedule(6, 8, keep_last=True))


def members():
    return [
        Member("short", SPEC, (0.0, 0.0), data=1, seed=1),  # 2 steps an epoch
        Member("long", SPEC, (0.0, 0.0), data=0, seed=2),  # 5
    ]


@torch.no_grad()
def run(pause):
    cohort = Cohort(members(), DATA)
    chunks = list(cohort.chunks(pause))
    return cohort, chunks


def test_every_pause_ends_a_chunk():
    cohort, chunks = run(7)
    assert cohort.n_steps == 30 == sum(chunks)
    ends = np.cumsum(chunks).tolist()
    assert {7, 14, 21, 28, 30} <= set(ends)


def test_pauses_change_nothing_and_members_keep_their_order():
    whole, _ = run(30)
    parts, _ = run(1)
    torch.testing.assert_close(whole.parameters(), parts.parameters())
    result = whole.result(None)
    assert [m.name for m in result.members] == ["short", "long"]
    assert result.stopped.tolist() == [12, 30]


@torch.no_grad()
def test_a_member_that_has_ended_stays_as_it_is():
    cohort = Cohort(members(), DATA)
    states = [(cohort.step, cohort.parameters()[0]) for _ in cohort.chunks(12)]
    seen = [own for step, own in states if step >= 12]
    assert torch.equal(seen[0], seen[-1]) and cohort.step == 30
