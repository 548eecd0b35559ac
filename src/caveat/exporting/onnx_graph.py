"""The file for ONNX: a graph of one chunk of draws, taken apart and put into a loop.

torch's exporter is given all that happens in one step of the loop, before and after it.
What hangs on the noise goes into the body of the loop, and all else stays outside:
there it is run once.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from caveat._optional import require
from caveat._random import MULTIPLIERS
from caveat._strata import SLICE
from caveat._torch import quiet_exporter
from caveat.exporting.chunks import Chunk
from caveat.exporting.describing import N_DRAWS, SEED
from caveat.exporting.onnx_noise import DOMAIN, SiteNodes, functions

OPSET, IR_VERSION = 20, 10
DRAW_NUMBERS, SLICE_NUMBERS = "caveat_draws", "caveat_slices"


class FlatStep(nn.Module):
    """All of a run as one straight line: the inputs of each stage are its inputs.

    From (inputs, noise of each site, sums at the end) to (sums of no draws, sums of
    these, answers). Noise that each row has for itself is made inside, from (seed,
    draws, slices). Sums are put together by nodes of our own. The reason for both: as
    inputs they would have the rows of the batch, and the exporter might read their
    number off there, in the loop.
    """

    def __init__(self, chunk: Chunk, n_inputs: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.chunk, self._n_inputs, self._dtype = chunk, n_inputs, dtype
        self.n_sums = len(chunk.empty(2, dtype))
        self.draws_inside = any(site.per_row for site in chunk.sites)

    @property
    def n_inside(self) -> int:
        """How many noises are made inside."""
        return len(self.chunk.sites) if self.draws_inside else 0

    @property
    def names(self) -> list[str]:
        """Of the inputs between those of the model and the sums."""
        if self.draws_inside:
            return [SEED, DRAW_NUMBERS, SLICE_NUMBERS]
        return [f"caveat_noise_{i}" for i in range(len(self.chunk.sites))]

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        n, between = self._n_inputs, len(self.names)
        inputs, given_noise = given[:n], given[n : n + between]
        chunk, rows = self.chunk, self.chunk.rows(inputs)
        noise: Sequence[Tensor] = given_noise
        if self.draws_inside:
            seed, draws, slices = given_noise
            noise = chunk.noise(seed, draws, slices, rows)
        block = chunk.block(chunk.clean(*inputs), noise, rows, noise[0].shape[0])
        own = chunk.summary.of_block(block)
        told = chunk.summary.told(given[n + between :])
        inside = noise if self.draws_inside else ()
        return (*chunk.empty(rows, self._dtype), *own, *inside, *told)

    def example(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Arguments to trace it with, every size of which that varies is above 1."""
        chunk = self.chunk
        draws = torch.arange(SLICE - 1, SLICE - 1 + (3 if chunk.together else 1))
        slices = torch.arange(2 if chunk.together else 1)
        address = (torch.tensor(0), draws, slices)
        rows = chunk.rows(inputs)
        noise = address if self.draws_inside else tuple(chunk.noise(*address, rows))
        sums = tuple(
            torch.ones(
                [max(n, 2) if axis in varies else n for axis, n in enumerate(s)],
                dtype=t,
            )
            for s, varies, t in self._sums(rows)
        )
        return (*inputs, *noise, *sums)

    def sizes(self, inputs: Sequence[Tensor], axes: Sequence[int | None]) -> Any:
        """Which sizes of the arguments vary, as ``torch.export`` is told."""
        auto = torch.export.Dim.AUTO
        own = [{} if axis is None else {axis: auto} for axis in axes]
        chunk = {0: auto} if self.chunk.together else {}
        sums = [
            dict.fromkeys(varies, auto)
            for _, varies, _ in self._sums(self.chunk.rows(inputs))
        ]
        between: list[Any] = (
            [{}] + [chunk] * 2 if self.draws_inside else [chunk] * len(self.names)
        )
        return ((*own, *between, *sums),)

    def _sums(self, rows: int) -> list[tuple[list[int], list[int], torch.dtype]]:
        """Shape, axes that vary, and type of all that is carried."""
        found = []
        pair = (self.chunk.empty(n, self._dtype) for n in (rows, rows + 1))
        for one, other in zip(*pair, strict=True):
            varies = [
                axis
                for axis, (n, m) in enumerate(zip(one.shape, other.shape, strict=True))
                if n != m or n == 0
            ]
            found.append((list(one.shape), varies, one.dtype))
        return found


def flat_model(
    step: FlatStep,
    inputs: Sequence[Tensor],
    axes: Sequence[int | None],
    names: Sequence[str],
) -> Any:
    """``step`` as an ONNX model, its inputs and outputs named."""
    given, n_sums = step.example(inputs), step.n_sums
    # Names that no value inside has: a "mean" there would be taken for the answer.
    outputs = [
        *(f"caveat_start_{i}" for i in range(n_sums)),
        *(f"caveat_own_{i}" for i in range(n_sums)),
        *(f"caveat_inside_{i}" for i in range(step.n_inside)),
        *(f"caveat_told_{i}" for i in range(len(step.chunk.summary.wanted))),
    ]
    with quiet_exporter(), torch.no_grad():
        program = torch.onnx.export(
            step.eval(),
            given,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=step.sizes(inputs, axes),
            input_names=[*names, *step.names, *_ends(n_sums)],
            output_names=outputs,
            custom_translation_table=translations(),
            verbose=False,
            optimize=True,
        )
    assert program is not None
    return program.model_proto


def _ends(count: int) -> list[str]:
    return [f"caveat_end_{i}" for i in range(count)]


def translations() -> dict[Any, Any]:
    """How our own operations read in ONNX, where only unsigned numbers are shifted."""
    script = require("onnxscript", extra="export")
    onnx = require("onnx", extra="export")
    op, kind = script.opset20, onnx.TensorProto

    def constant(value: int) -> Any:
        return op.Constant(value=onnx.helper.make_tensor("", kind.UINT64, [], [value]))

    def in_onnx_shift(bits: Any, by: int) -> Any:
        wide = op.BitShift(
            op.Cast(bits, to=kind.UINT64), constant(by), direction="RIGHT"
        )
        return op.Cast(wide, to=kind.INT64)

    def in_onnx_mix(bits: Any) -> Any:
        wide = op.Cast(bits, to=kind.UINT64)
        for by, multiplier in zip((30, 27, 31), (*MULTIPLIERS, None), strict=True):
            moved = op.BitShift(wide, constant(by), direction="RIGHT")
            wide = op.BitwiseXor(wide, moved)
            if multiplier is not None:
                wide = op.Mul(wide, constant(multiplier))
        return op.Cast(wide, to=kind.INT64)

    own = torch.ops.caveat
    return {own.mix.default: in_onnx_mix, own.shift.default: in_onnx_shift}


# ------------------------------------------------------------ the loop


def looped_model(flat: Any, step: FlatStep, names: Sequence[str]) -> Any:
    """The model for users: inputs, ``seed`` and ``n_draws`` to the answers."""
    return _Loop(flat, step, names).model()


class _Loop:
    def __init__(self, flat: Any, step: FlatStep, names: Sequence[str]) -> None:
        self._onnx = require("onnx", extra="export")
        _set_aside(flat, step.chunk.summary.wanted)
        self._flat, self._step, self._names = flat, step, list(names)
        count = step.n_sums
        self._befores = [f"caveat_before_{i}" for i in range(count)]
        self._afters = [f"caveat_after_{i}" for i in range(count)]
        self._ends = _ends(count)
        # By place: the exporter gives one name to outputs that are equal.
        outputs = [value.name for value in flat.graph.output]
        self._starts, self._owns = outputs[:count], outputs[count : 2 * count]
        self._told = outputs[-len(step.chunk.summary.wanted) :]
        self._noise = None
        if not step.draws_inside:
            self._noise = SiteNodes(step.chunk.sites, SEED)
            self._noise.write(step.names)

    def model(self) -> Any:
        graph, helper = self._flat.graph, self._onnx.helper
        nodes = list(graph.node)
        inside = _depending(nodes, set(self._step.names) - {SEED})
        after = _depending(nodes, set(self._ends))
        before = [n for i, n in enumerate(nodes) if i not in inside | after]
        loop = helper.make_node(
            "Loop",
            ["caveat_n_steps", "", *self._starts],
            self._ends,
            body=self._body([n for i, n in enumerate(nodes) if i in inside]),
        )
        inputs = [v for v in graph.input if v.name in self._names]
        whole = self._onnx.TensorProto.INT64
        inputs += [helper.make_tensor_value_info(n, whole, []) for n in (SEED, N_DRAWS)]
        keys = [] if self._noise is None else self._noise.keys
        constants = [] if self._noise is None else self._noise.constants
        made = helper.make_graph(
            [
                *keys,
                *before,
                *self._steps(),
                loop,
                *(n for i, n in enumerate(nodes) if i in after),
                *self._answers(),
            ],
            "caveat",
            inputs,
            self._results(),
            initializer=[*graph.initializer, *constants, *self._constants()],
        )
        model = helper.make_model(
            made,
            opset_imports=_with_own(self._onnx, self._flat.opset_import),
            functions=[*self._flat.functions, *functions()],
        )
        model.ir_version = self._flat.ir_version
        _forget_origins(model)
        return model

    def _answers(self) -> list[Any]:
        """Identities that give the answers their names."""
        wanted = self._step.chunk.summary.wanted
        node = self._onnx.helper.make_node
        return [
            node("Identity", [t], [w]) for t, w in zip(self._told, wanted, strict=True)
        ]

    def _results(self) -> list[Any]:
        found = []
        wanted = self._step.chunk.summary.wanted
        own = list(self._flat.graph.output)[-len(wanted) :]
        for name, value in zip(wanted, own, strict=True):
            result = self._onnx.ValueInfoProto()
            result.CopyFrom(value)
            result.name = name
            found.append(result)
        return found

    def _merging(self) -> list[Any]:
        """Sums before and sums of this step together, as ``DrawSummary.merged``."""
        node, found = self._onnx.helper.make_node, []
        pairs = list(zip(self._befores, self._owns, self._afters, strict=True))
        if self._step.chunk.summary.keeps_draws:
            *pairs, (before, own, after) = pairs
            found.append(node("Concat", [before, own], [after], axis=0))
        if not self._step.chunk.summary.merges_moments:
            return [*found, *(node("Add", [b, o], [a]) for b, o, a in pairs)]
        (count, own_count, total), (mean, own_mean, mean_after), scatters, *noise = (
            pairs
        )
        scatter, own_scatter, scatter_after = scatters
        found += [node("Add", [b, o], [a]) for b, o, a in noise]
        m = "caveat_merge_"
        return [
            *found,
            node("Add", [count, own_count], [total]),
            node("Div", [own_count, total], [m + "share"]),
            node("Sub", [own_mean, mean], [m + "gap"]),
            node("Mul", [m + "gap", m + "share"], [m + "move"]),
            node("Add", [mean, m + "move"], [mean_after]),
            node("Mul", [m + "gap", m + "gap"], [m + "square"]),
            node("Mul", [count, m + "share"], [m + "weight"]),
            node("Mul", [m + "square", m + "weight"], [m + "between"]),
            node("Add", [own_scatter, m + "between"], [m + "more"]),
            node("Add", [scatter, m + "more"], [scatter_after]),
        ]

    def _constants(self) -> list[Any]:
        helper, whole = self._onnx.helper, self._onnx.TensorProto.INT64
        chunk = self._step.chunk
        numbers = {"caveat_1": 1, "caveat_slice": SLICE}
        numbers |= {"caveat_most": chunk.most, "caveat_held": chunk.rows_at_once}
        found = [helper.make_tensor(n, whole, [], [v]) for n, v in numbers.items()]
        axis = [chunk.row_place.axis]
        return [*found, helper.make_tensor("caveat_axis", whole, [1], axis)]

    def _steps(self) -> list[Any]:
        """How many draws are computed at a time, and how many times."""
        node = self._onnx.helper.make_node
        rows = self._names[self._step.chunk.row_place.number]
        return [
            node("Shape", [rows], ["caveat_shape"]),
            node("Gather", ["caveat_shape", "caveat_axis"], ["caveat_rows_1"]),
            node("Squeeze", ["caveat_rows_1"], ["caveat_rows"]),
            node("Max", ["caveat_rows", "caveat_1"], ["caveat_some_rows"]),
            node("Div", ["caveat_held", "caveat_some_rows"], ["caveat_fit"]),
            node("Min", ["caveat_fit", "caveat_most"], ["caveat_fewer"]),
            node("Max", ["caveat_fewer", "caveat_1"], ["caveat_size"]),
            node("Add", [N_DRAWS, "caveat_size"], ["caveat_beyond"]),
            node("Sub", ["caveat_beyond", "caveat_1"], ["caveat_up"]),
            node("Div", ["caveat_up", "caveat_size"], ["caveat_n_steps"]),
        ]

    def _body(self, nodes: list[Any]) -> Any:
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        node, info = helper.make_node, helper.make_tensor_value_info
        numbers = [
            node("Mul", ["caveat_step", "caveat_size"], ["caveat_first"]),
            node("Add", ["caveat_first", "caveat_size"], ["caveat_full"]),
            node("Min", ["caveat_full", N_DRAWS], ["caveat_stop"]),
            node("Range", ["caveat_first", "caveat_stop", "caveat_1"], [DRAW_NUMBERS]),
            node("Div", ["caveat_first", "caveat_slice"], ["caveat_first_slice"]),
            node("Sub", ["caveat_stop", "caveat_1"], ["caveat_last"]),
            node("Div", ["caveat_last", "caveat_slice"], ["caveat_last_slice"]),
            node("Add", ["caveat_last_slice", "caveat_1"], ["caveat_stop_slice"]),
            node(
                "Range",
                ["caveat_first_slice", "caveat_stop_slice", "caveat_1"],
                [SLICE_NUMBERS],
            ),
            node("Identity", ["caveat_go_on"], ["caveat_goes_on"]),
        ]
        types = [v.type.tensor_type.elem_type for v in self._flat.graph.output]
        carried = list(zip(self._befores, self._afters, types, strict=False))
        return helper.make_graph(
            [
                *numbers,
                *(() if self._noise is None else self._noise.nodes),
                *nodes,
                *self._merging(),
            ],
            "caveat_draws_of_a_step",
            [
                info("caveat_step", kinds.INT64, []),
                info("caveat_go_on", kinds.BOOL, []),
                *(info(before, kind, None) for before, _, kind in carried),
            ],
            [
                info("caveat_goes_on", kinds.BOOL, []),
                *(info(after, kind, None) for _, after, kind in carried),
            ],
        )


def _set_aside(flat: Any, wanted: Sequence[str]) -> None:
    """Give values that have the name of an answer by chance another one."""
    for node in flat.graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name in wanted:
                    names[place] = f"caveat_value_{name}"
    for constant in flat.graph.initializer:
        if constant.name in wanted:
            constant.name = f"caveat_value_{constant.name}"


def _with_own(onnx: Any, imports: Any) -> list[Any]:
    """Versions of operators, with those of our functions."""
    others = [known for known in imports if known.domain != DOMAIN]
    return [*others, onnx.helper.make_opsetid(DOMAIN, 1)]


def noise_model(step: FlatStep) -> Any:
    """The noise of all sites by itself, from the seed and the numbers of the draws."""
    onnx = require("onnx", extra="export")
    helper, whole = onnx.helper, onnx.TensorProto.INT64
    made = SiteNodes(step.chunk.sites, SEED)
    made.write(step.names)
    info = helper.make_tensor_value_info
    inputs = [info(SEED, whole, [])]
    inputs += [info(n, whole, [None]) for n in (DRAW_NUMBERS, SLICE_NUMBERS)]
    outputs = [
        info(name, helper.np_dtype_to_tensor_dtype(kind), [None] * (1 + rank))
        for name, kind, rank in (
            (n, torch.empty(0, dtype=s.spec.dtype).numpy().dtype, len(s.spec.shape))
            for n, s in zip(step.names, step.chunk.sites, strict=True)
        )
    ]
    nodes = [*made.keys, *made.nodes]
    graph = helper.make_graph(nodes, "noise", inputs, outputs, made.constants)
    opsets = _with_own(onnx, [helper.make_opsetid("", OPSET)])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions())
    model.ir_version = IR_VERSION
    return model


def _depending(nodes: Sequence[Any], names: set[str]) -> set[int]:
    """Numbers of the nodes that read some of these values, directly or not."""
    known, found = set(names), set()
    for number, node in enumerate(nodes):
        if known & set(_read_by(node)):
            found.add(number)
            known |= set(node.output)
    return found


def _read_by(node: Any) -> Iterable[str]:
    """Names of all values that a node reads, also in graphs inside of it."""
    yield from node.input
    for attribute in node.attribute:
        graphs = (
            [attribute.g, *attribute.graphs]
            if attribute.HasField("g")
            else attribute.graphs
        )
        for graph in graphs:
            for inner in graph.node:
                yield from _read_by(inner)


def _forget_origins(model: Any) -> None:
    """Take out where in the source each node comes from: paths of this machine."""
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        if hasattr(graph, "value_info"):
            del graph.value_info[:]
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs.extend(attribute.graphs)
