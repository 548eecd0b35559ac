"""PredictionWriter: the callback with which ``trainer.predict`` gives predictives."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import BasePredictionWriter

from caveat import _validation as check
from caveat._drafts import checked_output
from caveat._optional import require
from caveat.errors import InputTypeError, NoAnswerError, ParameterError, ShapeError
from caveat.lightning.stepping import other_arguments, step_view
from caveat.predictive import ClassificationPredictive, Predictive
from caveat.predictive.joining import together
from caveat.sampling import MCDropout

ROW = "row"  # the column of row numbers, where rows are spread over processes


class PredictionWriter(BasePredictionWriter):
    """With this callback, ``trainer.predict`` gives a predictive for every batch.

    What is sampled is the module's own ``predict_step``, whatever it does with a batch;
    the module is as it was afterwards. The mode of the module does not matter:
    Lightning puts it in evaluation mode before predicting, which turns dropout off in a
    loop of one's own. Answers do not depend on the size of the batches, but for Monte
    Carlo errors, which each batch tells from its own rows.

    Parameters
    ----------
    path : str or Path, optional
        A file for the answers: CSV, JSON lines, Parquet or Arrow, as it ends, with the
        columns of ``caveat predict``. Several loaders write ``name-0.csv``,
        ``name-1.csv``, …; several processes ``name-rank0.csv``, …, with a column
        ``row`` for the place of a row in the data set. Needs the extra ``[files]``.
    precision : float or Tensor, optional
        Of a regression: τ, the inverse variance of the noise in y.
    classify : bool, default False
        Whether the step gives logits of classes.
    n_draws : int
        T of the papers.
    seed : int
        Of the draws.
    output : callable or str, optional
        What the step returns, as for :meth:`caveat.MCDropout.regress` or
        :meth:`~caveat.MCDropout.classify`.
    class_dim : int, optional
        The axis of the classes, if there are more than two.
    keep_draws : bool
        Whether predictives keep their draws.
    level : float
        Of the intervals in the file.
    target : str
        The name of what is predicted, with which the columns of the file begin.
    classes : sequence, optional
        Names of the classes, for the file.

    Examples
    --------
    >>> import torch
    >>> from lightning.pytorch import LightningModule, Trainer
    >>> class Net(LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.last = torch.nn.Linear(3, 1)
    ...     def forward(self, x):
    ...         return self.last(torch.nn.functional.dropout(x, 0.2, self.training))
    >>> writer = PredictionWriter(precision=4.0, n_draws=50)
    >>> quiet = {"logger": False, "enable_progress_bar": False, "barebones": False}
    >>> trainer = Trainer(callbacks=[writer], accelerator="cpu", **quiet)
    >>> loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=4)
    >>> parts = trainer.predict(Net(), loader)
    >>> len(parts), len(writer.predictive)
    (2, 8)
    """

    def __init__(  # noqa: PLR0913, a door: all but the file by name
        self,
        path: Any = None,
        *,
        precision: Any = None,
        classify: bool = False,
        n_draws: int = 100,
        seed: int = 0,
        output: Any = None,
        class_dim: int | None = None,
        keep_draws: bool = True,
        level: float = 0.9,
        target: str = "y",
        classes: Sequence[Any] | None = None,
    ) -> None:
        super().__init__("batch")
        _check_side(check.boolean("classify", classify), precision, class_dim, classes)
        if path is not None:
            require("pyarrow", extra="files")
            checked_output(path)
        self.path = None if path is None else Path(path)
        self.n_draws = check.positive_int("n_draws", n_draws)
        self.level = check.unit_interval("level", level)
        self.seed, self.target, self.classes = seed, target, classes
        self._classify = classify
        options = {"n_draws": n_draws, "output": output, "keep_draws": keep_draws}
        own = {"class_dim": class_dim} if classify else {"precision": precision}
        self._options: dict[str, Any] = {**options, **own, "progress": False}
        self._parts: dict[int, list[Predictive]] = {}
        self._files: dict[int, Any] = {}
        self._open = ExitStack()

    @property
    def predictives(self) -> list[Any]:
        """The predictive of each loader, all its rows in the order they came in.

        In several processes, those of this one.
        """
        if not self._parts:
            raise NoAnswerError(
                "Nothing has been predicted yet. Give the callback to a Trainer, and "
                "call trainer.predict."
            )
        return [together(self._parts[number]) for number in sorted(self._parts)]

    @property
    def predictive(self) -> Any:
        """The predictive of all rows, of the one loader there was."""
        found = self.predictives
        if len(found) > 1:
            raise NoAnswerError(
                f"There were {len(found)} loaders: predictives has one for each."
            )
        return found[0]

    # ------------------------------------------------------------ hooks of Lightning

    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Have the trainer call our step in place of the module's."""
        if "predict_step" in pl_module.__dict__:
            raise ParameterError(
                "A Trainer must have one PredictionWriter. Got several; call "
                "trainer.predict once for each."
            )
        self._parts, self._files, self._open = {}, {}, ExitStack()
        self._step_of(pl_module)

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep the predictive of a batch, and write it."""
        part = outputs.to("cpu")
        self._parts.setdefault(dataloader_idx, []).append(part)
        if self.path is not None:
            rows = trainer.predict_loop.current_batch_indices
            self._write(trainer, part, dataloader_idx, rows)

    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Files are complete, and the module is as it was."""
        pl_module.__dict__.pop("predict_step", None)
        self._open.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """The module is as it was; no file is there that is not complete."""
        pl_module.__dict__.pop("predict_step", None)
        self._open.__exit__(type(exception), exception, exception.__traceback__)

    # ------------------------------------------------------------ private

    def _step_of(self, module: LightningModule) -> None:
        mc = MCDropout(step_view(module), seed=self.seed)
        asked: Any = mc.classify if self._classify else mc.regress
        step = module.predict_step

        def predict_step(
            batch: Any, batch_idx: int = 0, dataloader_idx: int = 0
        ) -> Predictive:
            others = other_arguments(step, [batch_idx, dataloader_idx])
            # Tensors of inference mode could not be used by anything that learns.
            with torch.inference_mode(False), torch.no_grad():
                found: Predictive = asked(batch=batch, others=others, **self._options)
            return found

        module.__dict__["predict_step"] = predict_step

    def _write(
        self, trainer: Trainer, part: Any, loader: int, rows: Sequence[int]
    ) -> None:
        table = self._table(part, rows if trainer.world_size > 1 else None)
        if loader not in self._files:
            from caveat.frames import write_table

            path = self._path(trainer, loader)
            opened = write_table(path, table.schema)
            self._files[loader] = self._open.enter_context(opened)
        self._files[loader](table)

    def _path(self, trainer: Trainer, loader: int) -> Path:
        assert self.path is not None
        words = list(_words(trainer, loader))
        first, dot, ending = self.path.name.partition(".")
        return self.path.with_name("-".join([first, *words]) + dot + ending)

    def _table(self, part: Any, rows: Sequence[int] | None) -> Any:
        import pyarrow as pa

        from caveat.frames import Target
        from caveat.frames.answers import answer_columns, answer_types

        names = self._names(part)
        kind = "integer" if names and self.classes is None else "text"
        target = Target(self.target, kind if names else "number", bool(names))
        types = answer_types(target, names, has_sets=False, defers=False)
        found = answer_columns(part, target, names, self.level, has_sets=False)
        if rows is not None:
            types.insert(0, (ROW, pa.int64()))
            found[ROW] = (
                pa.array(rows, pa.int64()) if rows else pa.nulls(len(part), pa.int64())
            )
        schema = pa.schema(types)
        own = [pa.array(found[field.name], field.type) for field in schema]
        return pa.Table.from_arrays(own, schema=schema)

    def _names(self, part: Any) -> list[Any]:
        """The classes of the columns; none of a regression."""
        if not isinstance(part, ClassificationPredictive):
            _check_one(part.mean.shape[1:])
            return []
        _check_one(part.probs.shape[1:-1])
        number = part.probs.shape[-1]
        if self.classes is None:
            return list(range(number))
        return [str(name) for name in check.class_names(self.classes, number)]


def _words(trainer: Trainer, loader: int) -> Iterator[str]:
    """What sets the files of loaders and processes apart."""
    loaders = trainer.predict_dataloaders
    if isinstance(loaders, list | tuple) and len(loaders) > 1:
        yield str(loader)
    if trainer.world_size > 1:
        yield f"rank{trainer.global_rank}"


def _check_one(event: Sequence[int]) -> None:
    if any(size != 1 for size in event):
        raise ShapeError(
            f"A file has one output or label per row. Got outputs of shape "
            f"{tuple(event)}; leave path out, and use the predictives."
        )


def _check_side(classify: bool, precision: Any, class_dim: Any, classes: Any) -> None:
    if classify and precision is not None:
        raise ParameterError("precision is for a regression. Leave it or classify out.")
    if not classify and precision is None:
        raise InputTypeError(
            "PredictionWriter needs precision=tau, the inverse variance of the noise "
            "in y, for a regression; or classify=True for the logits of classes."
        )
    if not classify and (class_dim is not None or classes is not None):
        raise ParameterError("class_dim and classes are for classify=True.")
    if precision is not None:
        check.precision(precision)
