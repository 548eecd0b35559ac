"""Values that are worked out when they are asked for."""

from caveat.predictive.late import Late


def test_a_value_is_made_once_and_only_when_asked_for():
    calls = []

    def make(number):
        calls.append(number)
        return number + 1

    late = Late(make, 4)
    assert calls == []
    assert (late.value, late.value) == (5, 5)
    assert calls == [4]
