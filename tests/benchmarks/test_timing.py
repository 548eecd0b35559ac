"""Times that can be compared: in turn, often enough, and for long enough."""

from benchmarks.timing import interleaved


def test_short_calls_are_repeated_until_they_have_lasted():
    calls = []
    functions = {name: lambda name=name: calls.append(name) for name in "ab"}
    few = interleaved(functions, repetitions=1)
    n_few = len(calls)
    many = interleaved(functions, repetitions=1, lasting=1.0)
    assert len(calls) - n_few > 2 * n_few
    for found in (few, many):
        assert list(found) == ["a", "b"]
        assert all(t.fastest <= t.median <= t.slowest for t in found.values())
