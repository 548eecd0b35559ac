"""Inputs as people have them give what the same numbers in a tensor give."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from caveat.errors import InputTypeError
from caveat.sampling import MCDropout
from caveat.sampling.given import given_inputs

pd = pytest.importorskip("pandas")

X = torch.arange(12.0).reshape(4, 3) / 7
TABLE = pd.DataFrame(X.numpy(), columns=["a", "b", "c"], index=list("wxyz"))


def net(inputs: int = 3) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    made = nn.Sequential(nn.Linear(inputs, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    for parameter in made.parameters():
        parameter.data.uniform_(-1, 1, generator=generator)
    return made


class Named(nn.Module):
    """Arguments as a transformer has them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, input_ids=None, attention_mask=None):
        return self.inner(input_ids * attention_mask)


class TakesDict(nn.Module):
    """A dict is its one argument."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, batch):
        return self.inner(batch["image"] + batch["shift"])


class Looks(nn.Module):
    """Whole numbers look up rows of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, tokens):
        return self.drop(self.table(tokens)).sum((-1, -2))[..., None]


def draws(model: nn.Module, *args, **kwargs) -> torch.Tensor:
    return MCDropout(model, seed=3).draws(*args, n_draws=5, **kwargs)


@pytest.mark.parametrize(
    "given",
    [TABLE, TABLE.astype("float64"), X.tolist(), X.numpy(), tuple(X.tolist())],
    ids=["frame", "float64 frame", "lists", "array", "tuple of lists"],
)
def test_tables_and_lists(given) -> None:
    assert torch.equal(draws(net(), given), draws(net(), X))


def test_tables_by_name() -> None:
    assert torch.equal(draws(net(), input=TABLE), draws(net(), X))


def test_whole_numbers_are_real_ones_unless_they_are_looked_up() -> None:
    whole = pd.DataFrame(np.arange(6).reshape(2, 3))
    assert torch.equal(
        draws(net(), whole), draws(net(), torch.tensor(whole.values) * 1.0)
    )
    assert torch.equal(
        draws(net(), [[0, 1, 2]]), draws(net(), torch.tensor([[0.0, 1, 2]]))
    )
    looks = Looks()
    tokens = torch.tensor(whole.values)
    for given in (whole, tokens.tolist(), tokens.numpy()):
        assert torch.equal(draws(looks, given), draws(looks, tokens))


def test_a_column_is_a_table_of_one_column() -> None:
    assert torch.equal(draws(net(1), TABLE["b"]), draws(net(1), X[:, 1:2]))


def test_what_is_no_number_is_named() -> None:
    mixed = TABLE.assign(colour="red", when=pd.Timestamp("2020"))
    with pytest.raises(InputTypeError, match=r"numbers only. Got 'colour'.*'when'"):
        draws(net(), mixed)
    with pytest.raises(InputTypeError, match="Series must hold numbers only"):
        draws(net(1), mixed["colour"])


def test_many_columns_that_are_no_numbers_give_a_short_message() -> None:
    wide = pd.DataFrame({f"column {k}": ["x"] for k in range(900)})
    with pytest.raises(InputTypeError, match="and 895 more") as got:
        draws(net(), wide)
    assert len(str(got.value)) < 600


ARGUMENTS = {"input_ids": X, "attention_mask": torch.ones(4, 3)}


def test_a_mapping_of_arguments_is_keywords() -> None:
    transformers = pytest.importorskip("transformers")
    expected = draws(Named(), **ARGUMENTS)
    lists = {name: value.tolist() for name, value in ARGUMENTS.items()}
    for given in (
        ARGUMENTS,
        lists,
        transformers.BatchEncoding(ARGUMENTS),
        transformers.BatchEncoding(lists),
    ):
        assert torch.equal(draws(Named(), given), expected)


def test_a_mapping_that_the_model_takes_is_one_argument() -> None:
    batch = {"image": X, "shift": torch.ones(4, 3)}
    assert torch.equal(draws(TakesDict(), batch), draws(TakesDict(), batch=batch))


def test_a_function_draw_takes_the_same() -> None:
    mc = MCDropout(net(), seed=3)
    torch.testing.assert_close(mc.function(2)(TABLE), mc.function(2)(X))


class Pairs(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row], torch.zeros(())


class Stream(IterableDataset):
    def __iter__(self):
        return ((row, torch.zeros(())) for row in X)


def labelled() -> dict:
    pairs = TensorDataset(X, torch.zeros(4))
    return {
        "loader": DataLoader(pairs, batch_size=3),
        "list": [(X[:3], torch.zeros(3)), (X[3:], torch.zeros(1))],
        "generator": ((x, torch.zeros(len(x))) for x in (X[:1], X[1:])),
        "data set": Pairs(),
        "stream": Stream(),
        "dicts": [{"input": X, "labels": torch.zeros(4)}],
    }


@pytest.mark.parametrize("kind", labelled())
def test_labels_of_a_loader_are_left_out(kind) -> None:
    found = draws(net(), labelled()[kind], has_labels=True)
    torch.testing.assert_close(found, draws(net(), X))


def test_labels_that_are_not_announced_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputTypeError, match="has_labels=True"):
        draws(net(), labelled()["loader"])


@pytest.mark.parametrize("given", [X, [X], {"input": X}], ids=["x", "[x]", "dict"])
def test_labels_that_are_not_there_are_an_error(given) -> None:
    with pytest.raises(InputTypeError, match="has_labels=True"):
        draws(net(), given, has_labels=True)


def test_plain_calls_are_passed_on_untouched() -> None:
    model, inputs = net(), (X, X.numpy())
    found, keywords = given_inputs(model, inputs, {})
    assert found is inputs and keywords == {}


def test_answers_are_tensors_whatever_came_in() -> None:
    """The one rule: MCDropout and predictives answer with tensors, and take arrays."""
    for given in (X, X.numpy(), TABLE, X.tolist()):
        predictive = MCDropout(net(), seed=0).regress(given, precision=1.0, n_draws=4)
        y = np.zeros((4, 1))
        for answer in (predictive.mean, *predictive.interval(), predictive.log_prob(y)):
            assert isinstance(answer, torch.Tensor) and not answer.requires_grad
            assert np.asarray(answer).shape == tuple(answer.shape)
        assert isinstance(predictive.to_numpy()["mean"], np.ndarray)


class Converts:
    """An array of another library: all that it can is to become one of numpy."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.rows.numpy().copy()


class Parts:
    """One thing with named parts, which also can be iterated: a graph has that."""

    def __init__(self, **parts: torch.Tensor) -> None:
        self.parts = parts

    def keys(self) -> list[str]:
        return list(self.parts)

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.parts[name]

    def __iter__(self):
        return iter(self.parts.items())


class TakesParts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, given):
        return self.inner(given["x"])


def test_arrays_of_other_libraries() -> None:
    x = torch.ones(4, 3)
    assert torch.equal(draws(net(), Converts(x)), draws(net(), x))


def test_a_thing_with_named_parts_is_one_argument() -> None:
    model, x = TakesParts(), torch.ones(4, 3)
    assert torch.equal(draws(model, Parts(x=x)), draws(model, given=Parts(x=x)))


def test_arrays_that_run_backwards() -> None:
    """torch has no negative strides, and mirrored images do."""
    mc = MCDropout(net(), seed=0)
    mirrored = torch.from_numpy(X.numpy()[::-1, ::-1].copy())
    given = X.numpy()[::-1, ::-1]
    assert torch.equal(mc.draws(given, n_draws=2), mc.draws(mirrored, n_draws=2))
    found = mc.regress(X, precision=1.0)
    y = np.arange(4.0)[:, None]
    assert torch.equal(found.cdf(y[::-1]), found.cdf(y[::-1].copy()))


def test_observations_that_are_read_only() -> None:
    """As those that data frames lend; a warning would be an error here."""
    y = np.zeros((4, 1))
    y.setflags(write=False)
    assert MCDropout(net(), seed=0).regress(X, precision=1.0).cdf(y).shape == (4, 1)


def test_bools_beside_numbers_and_columns_that_may_miss_some() -> None:
    mc = MCDropout(net(), seed=0)
    mixed = {"a": [1.5, 2.0], "b": [True, False], "c": pd.array([1, 2], dtype="Int64")}
    plain = torch.tensor([[1.5, 1.0, 1.0], [2.0, 0.0, 2.0]])
    expected = mc.draws(plain, n_draws=2)
    assert torch.equal(mc.draws(pd.DataFrame(mixed), n_draws=2), expected)
    mixed["c"] = pd.array([1, None], dtype="Int64")
    with pytest.raises(InputTypeError, match="Got missing values"):
        mc.draws(pd.DataFrame(mixed), n_draws=2)
