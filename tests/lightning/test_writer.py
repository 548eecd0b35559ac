"""trainer.predict with PredictionWriter, against MCDropout on the module itself."""

import warnings

import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import caveat
from caveat.errors import (
    CaveatError,
    InputTypeError,
    NoAnswerError,
    ParameterError,
    ShapeError,
)

lightning = pytest.importorskip("lightning.pytorch")
from caveat.lightning import PredictionWriter  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*isinstance.*LeafSpec"),
]
N = 30


class Net(lightning.LightningModule):
    """Module and functional dropout, a norm, and a step that takes (x, y) apart."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(3, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3)
        )
        self.mid, self.last = nn.Linear(16, 8), nn.Linear(8, outputs)

    def forward(self, x):
        h = F.dropout(self.mid(self.body(x)).relu(), 0.2, self.training)
        return self.last(h)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.mse_loss(self(x)[:, 0], y)

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.01)


class Scaled(Net):
    """A step of several arguments, one of them read."""

    def predict_step(self, batch, batch_idx, dataloader_idx=0):
        return {"y": (1 + dataloader_idx) * self(batch["x"]), "n": batch_idx}


def trainer(*callbacks, **options):
    quiet = {"logger": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "enable_checkpointing": False}
    return lightning.Trainer(
        accelerator="cpu", callbacks=list(callbacks), **quiet, **options
    )


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator)
    return TensorDataset(x, x[:, 0] + 0.1)


@pytest.fixture(scope="module")
def net(data):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Net()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's, of workers and steps
            trainer(max_epochs=2).fit(model, DataLoader(data, 10))
    return model


def predicted(model, writer, *loaders):
    found = loaders[0] if len(loaders) == 1 else list(loaders)
    return trainer(writer).predict(model, found)


@pytest.mark.parametrize("size", [7, N])
def test_the_numbers_are_those_of_the_module(net, data, size):
    writer = PredictionWriter(precision=4.0, n_draws=40, seed=3)
    parts = predicted(net, writer, DataLoader(data, size))
    whole, x = writer.predictive, data.tensors[0]
    expected = caveat.MCDropout(net, seed=3).regress(x, precision=4.0, n_draws=40)
    assert len(parts) == -(-N // size) and len(parts[0]) == size
    torch.testing.assert_close(whole.draws, expected.draws)
    torch.testing.assert_close(whole.mean, expected.mean)
    torch.testing.assert_close(whole.std, expected.std)
    assert float(whole.epistemic_variance.min()) > 0  # although Lightning calls eval
    assert not whole.mean.is_inference()


def test_the_module_is_as_it_was(net, data):
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    modes, names = [m.training for m in net.modules()], set(vars(net))
    predicted(net, PredictionWriter(precision=1.0, n_draws=4), DataLoader(data, 10))
    assert all(torch.equal(v, before[name]) for name, v in net.state_dict().items())
    assert [m.training for m in net.modules()] == modes
    assert "predict_step" not in vars(net) and names <= set(vars(net))
    plain = trainer().predict(net, DataLoader(data, N))
    assert isinstance(plain[0], torch.Tensor)
    net.eval()


def test_a_step_of_ones_own_and_several_loaders(data, tmp_path):
    class Named(torch.utils.data.Dataset):
        def __len__(self):
            return N

        def __getitem__(self, number):
            return {"x": data[number][0]}

    model = Scaled()
    writer = PredictionWriter(
        tmp_path / "y.parquet",
        precision=1.0,
        n_draws=8,
        output=lambda found: found["y"],
    )
    parts = predicted(model, writer, *[DataLoader(Named(), 16) for _ in range(2)])
    assert [len(p) for loader in parts for p in loader] == [16, 14, 16, 14]
    one, two = writer.predictives
    torch.testing.assert_close(2 * one.draws, two.draws)
    with pytest.raises(NoAnswerError, match="2 loaders"):
        _ = writer.predictive
    means = [pq.read_table(tmp_path / f"y-{n}.parquet")["y_mean"] for n in (0, 1)]
    assert len(means[0]) == N
    torch.testing.assert_close(
        torch.tensor(means[1].to_pylist()), two.mean[:, 0].double().float()
    )


def test_a_step_with_more_outputs_than_logits(data):
    """Which tensor is meant must be said; then it is that of the module."""

    class Rich(Net):
        def predict_step(self, batch, batch_idx):
            features = self.body(batch[0])
            return {"scores": self(batch[0]), "features": features}

    model = Rich(3).train()  # Lightning puts it in evaluation mode, we do not care
    writer = PredictionWriter(
        classify=True, n_draws=12, seed=2, output=lambda found: found["scores"]
    )
    predicted(model, writer, DataLoader(data, 16))
    found = writer.predictive
    assert found.probs.shape == (N, 3) and float(found.mutual_information.min()) > 0
    assert found.n_draws == 12
    with pytest.raises(CaveatError, match="output"):
        predicted(model, PredictionWriter(classify=True), DataLoader(data, 16))


def test_a_file_has_the_columns_of_the_command_line(data, tmp_path):
    path = tmp_path / "answers.csv"
    model, names = Net(outputs=3), ["a", "b", "c"]
    writer = PredictionWriter(path, classify=True, n_draws=8, classes=names, target="k")
    predicted(model, writer, DataLoader(data, 8))
    table = arrow_csv.read_csv(path)
    probs = [f"k_prob_{name}" for name in names]
    assert table.column_names == [
        "k_label",
        *probs,
        "k_entropy",
        "k_mutual_information",
    ]
    found = torch.tensor([table[name].to_pylist() for name in probs]).T
    torch.testing.assert_close(found, writer.predictive.probs)
    labels = [names[number] for number in writer.predictive.label]
    assert table["k_label"].to_pylist() == labels


def test_nothing_is_left_of_a_file_that_failed(data, tmp_path):
    class Fails(Net):
        def predict_step(self, batch, batch_idx):
            if batch_idx == 2:
                raise RuntimeError("the third")
            return self(batch[0])

    model, path = Fails(), tmp_path / "y.csv"
    writer = PredictionWriter(path, precision=1.0, n_draws=4)
    with pytest.raises(RuntimeError, match="the third"):
        predicted(model, writer, DataLoader(data, 10))
    assert list(tmp_path.iterdir()) == []
    assert "predict_step" not in vars(model)


def test_errors(net, data, tmp_path):
    with pytest.raises(InputTypeError, match="classify=True"):
        PredictionWriter()
    with pytest.raises(ParameterError, match="for a regression"):
        PredictionWriter(precision=1.0, classify=True)
    with pytest.raises(ParameterError, match="classify=True"):
        PredictionWriter(precision=1.0, classes=["a"])
    with pytest.raises(NoAnswerError, match=r"trainer\.predict"):
        _ = PredictionWriter(precision=1.0).predictive
    writer = PredictionWriter(tmp_path / "y.csv", precision=1.0, n_draws=4)
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        predicted(Net(outputs=2), writer, DataLoader(data, 10))
    two = [PredictionWriter(precision=p, n_draws=4) for p in (1.0, 4.0)]
    with pytest.raises(ParameterError, match="one PredictionWriter"):
        trainer(*two).predict(net, DataLoader(data, 10))
    assert "predict_step" not in vars(net)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_process_writes_its_rows(net, data, tmp_path):
    path = tmp_path / "y.parquet"
    writer = PredictionWriter(path, precision=4.0, n_draws=8)
    two = trainer(writer, devices=2, strategy="ddp_spawn")
    two.predict(net, DataLoader(data, 5), return_predictions=False)
    tables = [pq.read_table(tmp_path / f"y-rank{n}.parquet") for n in (0, 1)]
    rows = [row for table in tables for row in table["row"].to_pylist()]
    means = [mean for table in tables for mean in table["y_mean"].to_pylist()]
    assert sorted(rows) == list(range(N))
    x = data.tensors[0][rows]
    mc = caveat.MCDropout(net, seed=0)
    expected = mc.regress(x, precision=4.0, n_draws=8).mean[:, 0]
    torch.testing.assert_close(torch.tensor(means), expected)
