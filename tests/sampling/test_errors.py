"""Bad input gets an error that names the value and the remedy."""

import inspect
import warnings
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn

import caveat
from caveat import MCDropout
from caveat.errors import (
    CaveatWarning,
    DrawsNotKeptError,
    InputTypeError,
    NoStochasticSiteError,
    ParameterError,
    ShapeError,
    UnsupportedModelError,
)

X = torch.linspace(-1, 1, 12).view(4, 3)


def net(rate: float = 0.5, outputs: int = 2) -> nn.Module:
    layers = [nn.Linear(3, 8), nn.ReLU(), nn.Dropout(rate), nn.Linear(8, outputs)]
    return nn.Sequential(*layers).eval()


class Returns(nn.Module):
    """A drawn net that returns whatever ``wrap`` makes of its output."""

    def __init__(self, wrap):
        super().__init__()
        self.net, self.wrap = net(), wrap

    def forward(self, x):
        return self.wrap(self.net(x))


def sample(model: nn.Module) -> torch.Tensor:
    with caveat.stochastic(model, seed=0):
        return model(X)


CALLS = {
    "draws": lambda model: MCDropout(model).draws(X, n_draws=3),
    "regress": lambda model: MCDropout(model).regress(X, n_draws=3, precision=1.0),
    "classify": lambda model: MCDropout(model).classify(X, n_draws=3),
    "function": lambda model: MCDropout(model).function(0)(X),
    "audit": lambda model: caveat.audit(model, X),
    "stochastic": sample,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
def test_no_site(call):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    with pytest.raises(NoStochasticSiteError) as caught:
        call(model)
    message = str(caught.value)
    assert "Sequential" in message
    assert "Dropout" in message  # what was looked for
    assert "LSTM" in message or "recurrent" in message
    assert "attention" in message.lower()
    assert "train it with dropout" in message  # the remedy


@every_call
def test_all_rates_zero(call):
    with pytest.raises(NoStochasticSiteError, match="0"):
        call(net(rate=0.0))


@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_net_without_dropout_has_no_site(layers):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.LSTM(3, 4, num_layers=layers, batch_first=True)

        def forward(self, x):
            return self.net(x)[0][:, -1]

    with pytest.raises(NoStochasticSiteError):
        MCDropout(Last()).draws(X[:, None], n_draws=2)


@every_call
def test_rate_of_one_names_the_path(call):
    model = nn.Sequential(OrderedDict(body=net(outputs=3), head=net(rate=1.0)))
    with pytest.raises(ParameterError, match=r"(?s)1\.0.*head\.2"):
        call(model)


@pytest.mark.parametrize("value", [0, -1, -100])
def test_too_few_draws(value):
    with pytest.raises(ParameterError, match=f"n_draws.*{value}"):
        MCDropout(net()).draws(X, n_draws=value)


@pytest.mark.parametrize("value", [2.5, 10.0, "3", True, None])
def test_number_of_draws_that_is_no_integer(value):
    with pytest.raises(InputTypeError, match="n_draws"):
        MCDropout(net()).draws(X, n_draws=value)


@pytest.mark.parametrize("value", [0, -3])
def test_batch_size_below_one(value):
    with pytest.raises(ParameterError, match=f"batch_size.*{value}"):
        MCDropout(net()).draws(X, n_draws=2, batch_size=value)


def test_negative_draw_number():
    with pytest.raises(ParameterError, match="-1"):
        MCDropout(net()).function(-1)


@pytest.mark.parametrize("call", ["draws", "classify"])
def test_empty_batch(call):
    with pytest.raises(ShapeError, match=r"(?i)empty"):
        getattr(MCDropout(net()), call)(X[:0], n_draws=2)


def test_empty_iterable_of_batches():
    with pytest.raises(ShapeError, match=r"(?i)empty"):
        MCDropout(net()).draws([], n_draws=2)


@pytest.mark.parametrize("convert", [torch.Tensor.clone, torch.Tensor.numpy])
def test_nan_in_the_input(convert):
    x = X.clone()
    x[2, 1] = float("nan")
    with pytest.raises(ParameterError, match=r"(?i)nan"):
        MCDropout(net()).draws(convert(x), n_draws=2)


@pytest.mark.parametrize("value", [0, 0.0, -2.0, float("nan"), float("inf")])
def test_precision_out_of_range(value):
    with pytest.raises(ParameterError, match="precision"):
        MCDropout(net()).regress(X, n_draws=2, precision=value)


@pytest.mark.parametrize("options", [{}, {"precision": None}], ids=["missing", "None"])
def test_precision_is_needed(options):
    with pytest.raises(InputTypeError, match=r"pass precision=1/s\*\*2"):
        MCDropout(net()).regress(X, n_draws=2, **options)


def test_the_signature_says_that_precision_is_needed():
    precision = inspect.signature(MCDropout.regress).parameters["precision"]
    assert precision.default is inspect.Parameter.empty
    assert precision.kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("value", [0.0, -0.1, 1.5])
def test_tolerance_out_of_range(value):
    with pytest.raises(ParameterError, match="tolerance"):
        MCDropout(net()).regress(X, precision=1.0, tolerance=value)


def test_model_without_parameters():
    with pytest.raises(ParameterError, match="parameter"):
        MCDropout(nn.Sequential(nn.Dropout(0.5))).draws(X, n_draws=2)


@pytest.mark.parametrize("wrap", [lambda y: "text", lambda y: None, lambda y: 3.0])
def test_output_that_is_not_a_tensor(wrap):
    with pytest.raises(InputTypeError, match=r"(?i)tensor"):
        MCDropout(Returns(wrap)).draws(X, n_draws=2)


@pytest.mark.parametrize("call", ["regress", "classify"])
def test_output_without_logits(call):
    options = {"precision": 1.0} if call == "regress" else {}
    model = Returns(lambda y: {"left": y, "right": y})
    with pytest.raises(InputTypeError, match="output=") as caught:
        getattr(MCDropout(model), call)(X, n_draws=2, **options)
    assert "left" in str(caught.value)


def test_output_callable_must_pick_a_tensor():
    model = Returns(lambda y: {"left": y, "right": y})
    with pytest.raises(InputTypeError, match=r"(?i)tensor"):
        MCDropout(model).regress(X, n_draws=2, precision=1.0, output=lambda o: o)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit is old
        return torch.jit.script(net())


def traced() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit is old
        return torch.jit.trace(net(), X)


def exported() -> nn.Module:
    return torch.export.export(net(), (X,)).module()


def inside(make):
    return lambda: nn.Sequential(make(), nn.Dropout(0.5), nn.Linear(2, 2))


@pytest.mark.parametrize("make", [scripted, traced, inside(scripted)])
@every_call
def test_torchscript(make, call):
    with pytest.raises(UnsupportedModelError, match=r"(?i)script"):
        call(make())


def test_exported_module_keeps_its_dropout():
    """An exported graph still calls dropout, but runs with its own batch size only."""
    with pytest.warns(CaveatWarning, match="cannot be run on two or three rows"):
        draws = MCDropout(exported(), seed=0).draws(X, n_draws=20)
    assert float(draws.std(0).max()) > 0


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # torch's own
@pytest.mark.filterwarnings("ignore:GraphModule cannot be run on two or three rows")
def test_exported_module_without_its_dropout():
    graph = torch.export.export(net(), (X,)).run_decompositions().module()
    with pytest.raises(NoStochasticSiteError, match="exported"):
        MCDropout(graph).draws(X, n_draws=2)


@pytest.mark.parametrize("thing", [torch.relu, "model", None, nn.Linear, {}])
def test_not_a_module(thing):
    with pytest.raises(InputTypeError, match=r"nn\.Module"):
        MCDropout(thing)
    with pytest.raises(InputTypeError, match=r"nn\.Module"):
        caveat.audit(thing, X)
    with pytest.raises(InputTypeError, match=r"nn\.Module"), caveat.stochastic(thing):
        pass


def test_classify_one_logit():
    with pytest.raises(ShapeError, match=r"(?i)class"):
        MCDropout(net(outputs=1)).classify(X, n_draws=2)


def test_log_prob_of_wrong_shape():
    predictive = MCDropout(net()).regress(X, n_draws=3, precision=1.0)
    for y in (torch.zeros(4), torch.zeros(4, 1), torch.zeros(2, 4), torch.zeros(2)):
        with pytest.raises(ShapeError, match=r"\(4, 2\)"):
            predictive.log_prob(y)


def test_log_prob_of_wrong_labels():
    predictive = MCDropout(net()).classify(X, n_draws=3)
    with pytest.raises(ShapeError):
        predictive.log_prob(torch.zeros(4, 1, dtype=torch.int64))
    with pytest.raises(ParameterError):
        predictive.log_prob(torch.tensor([0, 1, 2, 0]))
    with pytest.raises(InputTypeError):
        predictive.log_prob(torch.zeros(4))


def test_draws_that_were_not_kept():
    mc = MCDropout(net(), seed=0)
    predictive = mc.regress(X, n_draws=3, precision=1.0, keep_draws=False)
    with pytest.raises(DrawsNotKeptError, match="keep_draws=True"):
        predictive.log_prob(torch.zeros(4, 2))


def test_seed_that_is_no_number():
    with pytest.raises(InputTypeError, match="seed"):
        MCDropout(net(), seed="zero")


def test_no_input():
    with pytest.raises(InputTypeError):
        MCDropout(net()).draws(n_draws=2)


def test_error_of_the_model_is_not_hidden():
    """A wrong width is the model's error, and stays recognisable."""
    said = r"Sequential cannot .* shape \(4, 5\).*says: .*shapes cannot be multiplied"
    for ask in ("draws", "classify", "moments"):
        with pytest.raises(ShapeError, match=said) as caught:
            getattr(MCDropout(net()), ask)(torch.ones(4, 5))
        assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ShapeError, match=said):
        MCDropout(net()).function(0)(torch.ones(4, 5))
    with pytest.raises(ShapeError, match=said):
        caveat.audit(net(), torch.ones(4, 5))


@pytest.mark.filterwarnings("ignore:.*cannot be run on two or three rows")
def test_a_single_case_is_not_taken_for_rows():
    mc = MCDropout(net())
    for ask in (mc.classify, mc.moments, partial(mc.regress, precision=1.0)):
        with pytest.raises(ShapeError, match=r"Pass x\[None\]"):
            ask(torch.ones(3))


def test_settings_that_are_no_truth_values():
    for name in ("shared", "stratified", "analytic"):
        with pytest.raises(InputTypeError, match=f"{name} must be True or False"):
            MCDropout(net(), **{name: "no"})
    with pytest.raises(InputTypeError, match="keep_draws must be True or False"):
        MCDropout(net()).classify(X, keep_draws="no")
    with pytest.raises(InputTypeError, match="shared must be True or False"):
        caveat.stochastic(net(), shared=0).__enter__()
    with pytest.raises(ParameterError, match="batch_dim must be counted from"):
        MCDropout(net(), batch_dim=-1)


def test_an_error_that_is_not_about_shapes_stays_as_it_is():
    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            if not x.requires_grad:
                raise ValueError("I want gradients")
            return self.net(x)

    with pytest.raises(ValueError, match=r"^I want gradients$"):
        MCDropout(Picky()).draws(X, n_draws=2)


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(4), nn.Dropout(0.5), nn.LazyLinear(2))


@every_call
def test_lazy_layers_are_left_lazy(call):
    model = lazy()
    with pytest.raises(UnsupportedModelError, match="Call the model once"):
        call(model)
    assert model[0].has_uninitialized_params()
    assert isinstance(model[0], nn.LazyLinear)
    with torch.no_grad():
        model(X)
    call(model)


def test_lazy_layers_and_an_array():
    with pytest.raises(UnsupportedModelError, match="Call the model once"):
        MCDropout(lazy()).draws(X.numpy(), n_draws=2)


@every_call
def test_weights_on_the_meta_device(call):
    with pytest.raises(UnsupportedModelError, match="meta device"):
        call(net().to("meta"))


class OwnCall(nn.Sequential):
    """Torch's own call is not used, nor what a block could put there."""

    def __call__(self, x):
        return self.forward(x)


def test_a_block_refuses_a_call_that_it_cannot_see():
    model = OwnCall(*net())
    with (
        pytest.raises(UnsupportedModelError, match="function"),
        caveat.stochastic(model),
    ):
        pass
    draws = MCDropout(model, seed=0).draws(X, n_draws=3)
    assert torch.equal(MCDropout(model, seed=0).function(2)(X), draws[2])


@pytest.mark.parametrize("array", [np.array([object()] * 4), np.array(["a", "b"])])
def test_arrays_without_numbers_are_refused(array):
    with pytest.raises(InputTypeError, match="must hold numbers"):
        MCDropout(net()).draws(array, n_draws=2)


def test_a_matrix_of_scipy_is_refused():
    with pytest.raises(InputTypeError, match=r"csr_matrix.*toarray\(\)"):
        MCDropout(net()).draws(csr_matrix(X.numpy()), n_draws=2)


def test_a_module_without_forward():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = net()

    with pytest.raises(InputTypeError, match=r"Held.*pass .*\(model\.body\)"):
        MCDropout(Held()).draws(X, n_draws=2)


RAGGED = [[1.0], [2.0, 3.0]]
NOT_TENSORS = ["abc", b"abc", 5, None, object(), ["1"], RAGGED, [[True]], {1}, {}]


@pytest.mark.parametrize("thing", [*NOT_TENSORS, iter(["a"]), [None]])
def test_inputs_without_a_tensor(thing):
    with pytest.raises(InputTypeError, match=r"one tensor or numpy array\. Got"):
        MCDropout(net()).draws(thing, n_draws=2)


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.bool, torch.float64, torch.float16, torch.complex64]
)
@pytest.mark.parametrize("several", [True, False])
def test_types_that_the_model_cannot_take(dtype, several):
    x = (X > 0).to(dtype) if dtype is torch.bool else X.to(dtype)
    expected = f"input of shape .* is {dtype}. Pass"
    with pytest.raises(InputTypeError, match=expected):
        MCDropout(net()).draws([x, x] if several else x, n_draws=2)


def test_tensors_without_values():
    with pytest.raises(InputTypeError, match="'meta', which has none"):
        MCDropout(net()).draws(X.to("meta"), n_draws=2)


@pytest.mark.parametrize("empty", [[], (), iter([]), [X[:0]], iter([X, X[:0]])])
def test_nothing_to_predict(empty):
    with pytest.raises(ShapeError, match=r"(?i)empty"):
        MCDropout(net()).draws(empty, n_draws=2)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda draw: torch.vmap(draw)(X[:, None]),
        lambda draw: torch.func.jacrev(draw)(X),
        lambda draw: torch.func.jvp(draw, (X,), (X,)),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.func.jvp
def test_transformations_around_a_draw_are_refused(transformed):
    with pytest.raises(UnsupportedModelError, match="take derivatives by"):
        transformed(MCDropout(net(), seed=0).function(0))


@pytest.mark.filterwarnings("ignore:.* cannot be run on two")
@pytest.mark.parametrize(
    "layout, error, remedy",
    [
        (torch.strided, InputTypeError, "layout=torch.jagged"),
        (torch.jagged, UnsupportedModelError, "to_padded_tensor"),
    ],
)
def test_nested_inputs_and_outputs(layout, error, remedy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch: a prototype
        nested = torch.nested.nested_tensor([X, X[:2]], layout=layout)
    with pytest.raises(error, match=remedy):
        MCDropout(net(), seed=0).draws(nested, n_draws=2)
