"""The straight line of a pass: what is dead goes, what is shared stays."""

import pytest
import torch

from caveat.sampling import program as module
from caveat.sampling.program import Program
from caveat.sampling.tape import Op, Ref, Tape, map_refs, refs_in

_aten = torch.ops.aten
X = torch.tensor([1.0, 2.0])


class Numbers:
    """Noise that is the number of the draw."""

    numel = 2
    reads = ()

    def fixed(self, seed, draws):
        return torch.tensor([[float(d)] * 2 for d in draws])

    def stream(self, seed):
        return lambda draws: self.fixed(seed, draws)

    def finished(self, drawn, constants):
        return drawn


def written() -> Tape:
    """y = clone(x); y += noise; z = noise * 9 is used by nobody."""
    tape = Tape()
    x = tape.add_constant(X, group=-1)
    noise = tape.new_value(X, group=1)
    tape.noises[noise] = Numbers()
    y, z = tape.new_value(X, group=2), tape.new_value(X, group=3)
    tape.ops = [
        Op(_aten.clone.default, (Ref(x),), {}, (y,)),
        Op(_aten.mul.Tensor, (Ref(noise), 9.0), {}, (z,)),
        Op(_aten.add_.Tensor, (Ref(y), Ref(noise)), {}, (None,), writes=(y,)),
    ]
    tape.outputs = [Ref(y)]
    return tape


def test_a_write_is_alive_as_long_as_its_memory_is():
    tape = written()
    tape.drop_dead()
    assert [op.func for op in tape.ops] == [_aten.clone.default, _aten.add_.Tensor]
    assert len(tape.constants) == len(tape.noises) == 1


def test_without_outputs_all_is_dead():
    tape = written()
    tape.outputs = [None]
    tape.drop_dead()
    assert not (tape.ops or tape.constants or tape.noises)


def test_a_copy_can_be_changed():
    tape = written()
    copy = tape.copy()
    copy.ops[0].func = _aten.neg.default
    copy.outputs.append(3)
    copy.drop_dead()
    assert tape.ops[0].func is _aten.clone.default
    assert len(tape.ops) == 3 and len(tape.outputs) == 1


def test_refs_in_lists():
    arguments = (Ref(1), [Ref(2), 5], "text")
    assert list(refs_in(arguments)) == [1, 2]
    assert map_refs(lambda n: 10 * n, arguments) == (10, [20, 5], "text")


def test_the_program_of_a_tape():
    """Every draw starts from the constant, whatever the one before has written."""
    program = Program(written(), frozenset())
    draws = program.bound({}).outputs(0, range(3, 6))
    found = [output[0].tolist() for output in draws]
    assert found == [[4.0, 5.0], [5.0, 6.0], [6.0, 7.0]]
    assert X.tolist() == [1.0, 2.0]
    assert "add_" in program.source


@pytest.mark.parametrize(("waiting", "most"), [(1 << 22, 16), (12, 2), (1, 1)])
def test_large_outputs_do_not_wait_for_each_other(monkeypatch, waiting, most):
    """Draws side by side are made a few at a time where their outputs are large."""
    monkeypatch.setattr(module, "_WORTH_THREADS", 0)
    monkeypatch.setattr(module, "_WAITING", waiting)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    asked = []
    bound = Program(written(), frozenset()).bound({})
    several = bound._several
    bound._several = lambda seed, draws: asked.append(draws) or several(seed, draws)
    found = [output[0].tolist() for output in bound.outputs(0, range(70))]
    assert found == [[1.0 + d, 2.0 + d] for d in range(70)]
    assert max(map(len, asked)) == most
