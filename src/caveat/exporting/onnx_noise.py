"""The noise of sites written in ONNX, in unsigned numbers of 64 bits.

The twin of ``hashing.py`` and ``drawing.py``: what they say in torch would become four
times as many nodes, as ONNX shifts unsigned numbers only, and each of them costs time
when a model is exported. Functions of the file hold what all sites share.
"""

from typing import Any

import torch

from caveat._optional import require
from caveat._random import GOLDEN, axis_constant, stream_hash
from caveat._strata import BLOCK, SLICE
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.hashing import NORMAL_QUANTILE, Tables
from caveat.sampling.noise import Exponential, Integers, Mask, Normal, Uniform

DOMAIN = "caveat"
_HEAD = '<domain: "caveat", opset_import: ["" : 20, "caveat" : 1]>\n'

_MIX = """Mix (x) => (y) {
  by30 = Constant <value = uint64 {30}> ()
  by27 = Constant <value = uint64 {27}> ()
  by31 = Constant <value = uint64 {31}> ()
  first = Constant <value = uint64 {13787848793156543929}> ()
  second = Constant <value = uint64 {10723151780598845931}> ()
  a = BitShift <direction = "RIGHT"> (x, by30)
  b = BitwiseXor (x, a)
  c = Mul (b, first)
  d = BitShift <direction = "RIGHT"> (c, by27)
  e = BitwiseXor (c, d)
  f = Mul (e, second)
  g = BitShift <direction = "RIGHT"> (f, by31)
  y = BitwiseXor (f, g)
}"""

_KEY = """Key (seed, offset, name) => (key) {
  whole = Cast <to = 13> (seed)
  moved = Add (whole, offset)
  mixed = caveat.Mix (moved)
  sum = Add (mixed, name)
  key = caveat.Mix (sum)
}"""

_HIGH = """High (x) => (y) {
  half = Constant <value = uint64 {32}> ()
  y = BitShift <direction = "RIGHT"> (x, half)
}"""

_UNIT = """Unit (bits) => (y) {
  by = Constant <value = uint64 {12}> ()
  half = Constant <value = double {0.5}> ()
  scale = Constant <value = double {2.220446049250313e-16}> ()
  short = BitShift <direction = "RIGHT"> (bits, by)
  real = Cast <to = 11> (short)
  middle = Add (real, half)
  y = Mul (middle, scale)
}"""

_DROPPED = """Dropped (base, step, first, threshold, sizes, begins, words, slice, bit)
    => (dropped) {
  half = Constant <value = uint64 {4294967295}> ()
  orders = Constant <value = uint64 {24}> ()
  low = BitwiseAnd (base, half)
  wide = Mul (low, orders)
  turn = caveat.High (wide)
  plain = Cast <to = 7> (base)
  more = Less (plain, threshold)
  once = Cast <to = 13> (more)
  other = Mul (once, orders)
  case = Add (turn, other)
  case_number = Cast <to = 7> (case)
  which = Add (case_number, first)
  stepped = Add (base, step)
  mixed = caveat.Mix (stepped)
  bits = caveat.High (mixed)
  size = Gather (sizes, which)
  begin = Gather (begins, which)
  far = Mul (bits, size)
  inside = caveat.High (far)
  place = Add (begin, inside)
  number = Cast <to = 7> (place)
  word = Gather (words, number)
  of_draw = Gather <axis = 0> (word, slice)
  hit = BitwiseAnd (of_draw, bit)
  dropped = Cast <to = 9> (hit)
}"""

_STRATIFIED = """Stratified (base, step, slice, place, own, own_step, orders, turns)
    => (y) {
  all_orders = Constant <value = uint64 {4095}> ()
  fifteen = Constant <value = uint64 {15}> ()
  five = Constant <value = uint64 {5}> ()
  four = Constant <value = uint64 {4}> ()
  of_four = Constant <value = uint64 {24}> ()
  golden = Constant <value = uint64 {11400714819323198485}> ()
  block = Constant <value = double {64.0}> ()
  stepped = Add (base, step)
  of_slice = caveat.Mix (stepped)
  bits = Gather <axis = 0> (of_slice, slice)
  order = BitwiseAnd (bits, all_orders)
  order_number = Cast <to = 7> (order)
  at = Add (order_number, place)
  cell8 = Gather (orders, at)
  cell = Cast <to = 13> (cell8)
  turn = caveat.High (bits)
  turned = Add (cell, turn)
  cells = BitwiseAnd (turned, fifteen)
  from = Add (cells, five)
  jump = Mul (from, golden)
  of_block = Gather <axis = 0> (base, slice)
  address = Add (of_block, jump)
  of_cell = caveat.Mix (address)
  high = caveat.High (of_cell)
  wide = Mul (high, of_four)
  quarters = caveat.High (wide)
  four_times = Mul (quarters, four)
  quarter_at = Add (four_times, own)
  quarter_number = Cast <to = 7> (quarter_at)
  quarter = Gather (turns, quarter_number)
  last = Add (of_cell, own_step)
  last_bits = caveat.Mix (last)
  inside = caveat.Unit (last_bits)
  begin = Mul (cells, four)
  sum = Add (begin, quarter)
  real = Cast <to = 11> (sum)
  point = Add (real, inside)
  y = Div (point, block)
}"""


def functions() -> list[Any]:
    """The functions that sites call."""
    onnx = require("onnx", extra="export")
    texts = (_MIX, _KEY, _HIGH, _UNIT, _DROPPED, _STRATIFIED, _quantile())
    return [onnx.parser.parse_function(_HEAD + text) for text in texts]


def _quantile() -> str:
    """``hashing.normal_quantile``."""
    found = NORMAL_QUANTILE
    lines = [f"{n} = Constant <value = double {{{v!r}}}> ()" for n, v in found.numbers]
    lines += """top = Sub (one, tail_mass)
upper = Greater (p, top)
mirrored = Sub (one, p)
tail = Where (upper, mirrored, p)
y = Sub (tail, half)
square = Mul (y, y)""".split("\n")
    for name, (variable, coefficients) in found.polynomials.items():
        lines += _polynomial(name, variable, coefficients)
    lines += """ratio0 = Div (p0, q0)
cube = Mul (y, square)
bend = Mul (cube, ratio0)
straight = Add (y, bend)
middle = Mul (straight, root_two_pi)
log_tail = Log (tail)
twice = Mul (minus_two, log_tail)
ratio1 = Div (p1, q1)
near = Mul (z, ratio1)
ratio2 = Div (p2, q2)
far = Mul (z, ratio2)
is_near = Less (x, eight)
correction = Where (is_near, near, far)
log_x = Log (x)
log_part = Div (log_x, x)
first = Sub (x, log_part)
outside = Sub (first, correction)
minus = Neg (outside)
signed = Where (upper, outside, minus)
in_middle = Greater (tail, tail_mass)
quantile = Where (in_middle, middle, signed)""".split("\n")
    order = [line for line in lines if not line.startswith(("log_tail", "twice"))]
    place = next(i for i, line in enumerate(order) if line.startswith("square")) + 1
    order[place:place] = [
        "log_tail = Log (tail)",
        "twice = Mul (minus_two, log_tail)",
        "x = Sqrt (twice)",
        "z = Div (one, x)",
    ]
    return "Quantile (p) => (quantile) {\n" + "\n".join(order) + "\n}"


def _polynomial(name: str, variable: str, coefficients: Any) -> list[str]:
    lines, total = [], None
    for number, value in enumerate(coefficients):
        own = f"{name}_c{number}"
        lines.append(f"{own} = Constant <value = double {{{value!r}}}> ()")
        if total is None:
            total = own
            continue
        lines.append(f"{name}_m{number} = Mul ({total}, {variable})")
        total = name if number == len(coefficients) - 1 else f"{name}_s{number}"
        lines.append(f"{total} = Add ({name}_m{number}, {own})")
    return lines


class SiteNodes:
    """Nodes that make the noise of all sites, and the constants they read.

    Attributes
    ----------
    keys : list
        Nodes that hang on the seed alone.
    nodes : list
        Nodes that hang on the numbers of the draws, too.
    constants : list
        Initializers.
    """

    def __init__(self, sites: tuple[SiteNoise, ...], seed: str) -> None:
        self._onnx = require("onnx", extra="export")
        self._sites, self._seed = sites, seed
        self.keys: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[Any, str] = {}
        self._columns: dict[tuple[str, int], str] = {}
        self._tables = Tables.made()
        self._address()

    def write(self, outputs: list[str]) -> None:
        """The noise of each site under these names."""
        for number, (site, output) in enumerate(zip(self._sites, outputs, strict=True)):
            self._site(f"caveat_s{number}_", site, output)

    # ------------------------------------------------------------ parts

    def _address(self) -> None:
        """Of slices: blocks and turns. Of draws: their slice and place."""
        unsigned, whole = torch.uint64, torch.int64
        four, two = self._number(4, unsigned), self._number(2, unsigned)
        node, a = self._node, "caveat_a_"
        node("Cast", ["caveat_slices"], a + "slices", to=13)
        node("BitShift", [a + "slices", two], a + "blocks", direction="RIGHT")
        node("BitwiseAnd", [a + "slices", self._number(3, unsigned)], a + "turns")
        node("Add", [a + "turns", self._number(1, unsigned)], a + "next")
        node("Mul", [a + "next", self._number(GOLDEN, unsigned)], a + "step")
        node("Cast", [a + "turns"], a + "turn_numbers", to=7)
        node("Mul", [a + "turn_numbers", self._number(48, whole)], a + "first")
        node("Cast", ["caveat_draws"], a + "draws", to=13)
        node("BitShift", [a + "draws", four], a + "draw_slices", direction="RIGHT")
        node("Cast", [a + "draw_slices"], a + "draw_slice_numbers", to=7)
        first = self._array(torch.tensor([0]), "caveat_zero")
        node("Gather", ["caveat_slices", first], a + "first_slice")
        node("Sub", [a + "draw_slice_numbers", a + "first_slice"], a + "slice")
        fifteen = self._number(SLICE - 1, unsigned)
        node("BitwiseAnd", [a + "draws", fifteen], a + "places")
        node("Cast", [a + "places"], a + "place", to=7)

    def _site(self, s: str, site: SiteNoise, output: str) -> None:
        spec, law = site.spec, site.spec.law
        key = s + "key"
        name = self._number(stream_hash(site.stream), torch.uint64)
        offset = self._number(site.offset, torch.uint64)
        self.keys.append(self._made("Key", [self._seed, offset, name], [key], own=True))
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(
            torch.empty(0, dtype=spec.dtype).numpy().dtype
        )
        rank = len(spec.shape)
        numbers = "caveat_a_blocks" if spec.stratified else "caveat_a_draws"
        base = self._base(s, key, numbers, site)
        if isinstance(law, Mask):
            kept = self._kept(s, base, site, rank)
            self._node("Cast", [kept], s + "real", to=kind)
            scale = self._number(law.scale, spec.dtype)
            self._node("Mul", [s + "real", scale], output)
            return
        if spec.stratified:
            uniform = self._stratified(s, base, rank)
        else:
            uniform = self._node("Unit", [base], s + "uniform", own=True)
        self._node("Cast", [self._shaped(s, uniform, law, spec.dtype)], output, to=kind)

    def _base(self, s: str, key: str, numbers: str, site: SiteNoise) -> str:
        """Random bits of blocks or draws at all coordinates."""
        one, golden = self._number(1, torch.uint64), self._number(GOLDEN, torch.uint64)
        self._node("Add", [numbers, one], s + "n1")
        self._node("Mul", [s + "n1", golden], s + "n2")
        self._node("Add", [key, s + "n2"], s + "n3")
        self._node("Mix", [s + "n3"], s + "n4", own=True)
        rank = len(site.spec.shape)
        value = self._column(s + "n4", rank)
        for axis, size in enumerate(site.spec.shape):
            starts = site.spec.starts
            start = starts[axis] if axis < len(starts) else 0
            if size == 1 and start == 0:
                continue
            places = [
                (i * axis_constant(axis)) & (2**64 - 1)
                for i in range(start, start + size)
            ]
            own = self._places(tuple(places), [-1, *[1] * (rank - axis - 1)])
            value = self._node("Add", [value, own], f"{s}axis{axis}")
        return self._node("Mix", [value], s + "base", own=True)

    def _kept(self, s: str, base: str, site: SiteNoise, rank: int) -> str:
        law = site.spec.law
        assert isinstance(law, Mask)
        if site.counts is None:
            threshold = min(int(law.keep_prob * 2**64), 2**64 - 1) - 2**63
            self._node("Cast", [base], s + "bits", to=7)
            bound = self._number(threshold, torch.int64)
            return self._node("Less", [s + "bits", bound], s + "kept")
        counts, tables = site.counts, self._tables
        known = f"caveat_rate_{law.keep_prob!r}"
        sizes = self._array(counts.sizes.flatten().to(torch.uint64), known + "_sizes")
        begins = counts.starts.flatten().to(torch.uint64)
        bit = self._bits(rank)
        given = [
            base,
            self._column("caveat_a_step", rank),
            self._column("caveat_a_first", rank),
            self._number(counts.threshold, torch.int64),
            sizes,
            self._array(begins, known + "_begins"),
            self._array(tables.words, "caveat_words"),
            "caveat_a_slice",
            bit,
        ]
        self._node("Dropped", given, s + "dropped", own=True)
        return self._node("Not", [s + "dropped"], s + "kept")

    def _bits(self, rank: int) -> str:
        table = self._array(self._tables.bits, "caveat_bits")
        if ("bits", 0) not in self._columns:
            self._node("Gather", [table, "caveat_a_place"], "caveat_a_bits")
            self._columns["bits", 0] = "caveat_a_bits"
        return self._column("caveat_a_bits", rank)

    def _stratified(self, s: str, base: str, rank: int) -> str:
        if ("own", 0) not in self._columns:
            a, orders = "caveat_a_", self._number(4096, torch.int64)
            self._node("Mul", [a + "place", orders], a + "orders")
            self._node("Gather", [a + "turns", a + "slice"], a + "own", axis=0)
            self._node("Gather", [a + "step", a + "slice"], a + "own_step", axis=0)
            self._columns["own", 0] = a
        turns = self._tables.turns.to(torch.uint64)
        given = [
            base,
            self._column("caveat_a_step", rank),
            "caveat_a_slice",
            self._column("caveat_a_orders", rank),
            self._column("caveat_a_own", rank),
            self._column("caveat_a_own_step", rank),
            self._array(self._tables.orders, "caveat_orders"),
            self._array(turns, "caveat_turns"),
        ]
        return self._node("Stratified", given, s + "uniform", own=True)

    def _shaped(self, s: str, uniform: str, law: Any, dtype: torch.dtype) -> str:
        """Numbers of a law, made of uniform ones."""

        def of(value: float) -> str:
            return self._number(float(value), torch.float64)

        if isinstance(law, Normal):
            self._node("Quantile", [uniform], s + "standard", own=True)
            self._node("Mul", [s + "standard", of(law.std)], s + "wide")
            return self._node("Add", [s + "wide", of(law.mean)], s + "normal")
        if isinstance(law, Exponential):
            self._node("Log", [uniform], s + "log")
            self._node("Neg", [s + "log"], s + "minus")
            return self._node("Div", [s + "minus", of(law.rate)], s + "exponential")
        assert isinstance(law, Uniform | Integers)
        if isinstance(law, Uniform) and dtype != torch.float64:
            most = of(1 - 2**-24)
            uniform = self._node("Min", [uniform, most], s + "below")
        self._node("Mul", [uniform, of(law.high - law.low)], s + "wide")
        wide = s + "wide"
        if isinstance(law, Integers):
            wide = self._node("Floor", [wide], s + "floor")
        return self._node("Add", [wide, of(law.low)], s + "moved")

    # ------------------------------------------------------------ writing

    def _column(self, name: str, rank: int) -> str:
        """A vector as (n, 1, …, 1), with so many ones."""
        if rank == 0:
            return name
        if (name, rank) not in self._columns:
            shape = self._array(
                torch.tensor([-1, *[1] * rank]), f"caveat_column_{rank}"
            )
            column = self._node("Reshape", [name, shape], f"{name}_{rank}")
            self._columns[name, rank] = column
        return self._columns[name, rank]

    def _places(self, values: tuple[int, ...], shape: list[int]) -> str:
        name = f"caveat_places_{len(self.constants)}"
        if (values, *shape) not in self._known:
            size = [len(values), *shape[1:]]
            kind = self._onnx.TensorProto.UINT64
            made = self._onnx.helper.make_tensor(name, kind, size, values)
            self.constants.append(made)
            self._known[(values, *shape)] = name
        return self._known[(values, *shape)]

    def _number(self, value: float, dtype: torch.dtype) -> str:
        key = (repr(value), dtype)
        if key not in self._known:
            name = f"caveat_number_{len(self.constants)}"
            kinds = self._onnx.TensorProto
            kind = {
                torch.uint64: kinds.UINT64,
                torch.int64: kinds.INT64,
                torch.float64: kinds.DOUBLE,
                torch.float32: kinds.FLOAT,
                torch.float16: kinds.FLOAT16,
                torch.bfloat16: kinds.BFLOAT16,
            }[dtype]
            value = value & (2**64 - 1) if dtype == torch.uint64 else value  # type: ignore[operator]
            made = self._onnx.helper.make_tensor(name, kind, [], [value])
            self.constants.append(made)
            self._known[key] = name
        return self._known[key]

    def _array(self, tensor: torch.Tensor, name: str) -> str:
        if name not in self._known:
            made = self._onnx.numpy_helper.from_array(tensor.numpy(), name)
            self.constants.append(made)
            self._known[name] = name
        return name

    def _node(
        self, op: str, inputs: list[str], output: str, *, own: bool = False, **how: Any
    ) -> str:
        self.nodes.append(self._made(op, inputs, [output], own=own, **how))
        return output

    def _made(
        self, op: str, inputs: list[str], outputs: list[str], *, own: bool, **how: Any
    ) -> Any:
        make = self._onnx.helper.make_node
        return make(op, inputs, outputs, domain=DOMAIN if own else "", **how)


assert BLOCK == 64 and SLICE == 16  # which the functions are written for
