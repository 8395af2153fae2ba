"""How far PyTorch's results lie from float64, by the method of `tests/src/bin/accuracy`: the same inputs, bit for bit,
and the same measures.

    python3 torch_accuracy.py [--json FILE] [--op RE] [--ops NAME,NAME] [--skip-done FILE]... [--pairs 2^26]
                              [--budget-s S] [--sample] [--device cuda|cpu]

Ops of one operand run over all 2^32 f32 inputs and all 65,536 of f16 and bf16; those of several over the grid of
special values and 2^N random tuples (a quarter of more operands; at most 2^28 in 16 bits); gradients of ops of one
operand in 16 bits over every code of x with 16 grads before the random ones, and with 2^32 over all pairs. Everything stays on the
GPU: results are compared there with a float64 reference, which is the same op of PyTorch in float64, but for

- gelu, gelu_tanh, softplus, silu, mish, leaky_relu, hardswish, hardsigmoid, nan_to_num: formulas in `ONE` below, by
  erfc and logistic functions that keep the negative tail, with parameters as f32 holds them, and infinite where the
  product of f32 is;
- div_trunc, floor_divide, lerp: their steps, each rounded to f32, as PyTorch documents and compiles them;
- gated ops: the activation rounded to f32, times the value; left out where that activation is subnormal;
- exact ops of several operands in 16 bits: float64 rounded to f32 first, where their arithmetic is done;
- gradients (`NAME_backward`, by autograd; each of several has a row, `mul_backward/grad_a`): the formulas of
  `gradient_steps.py`, every step rounded to f32. Those that are a copy or a constant (add, sub, where, masked_fill,
  div_trunc, floor_divide) are left out.

A distance is in units in the last place (ULP) of the correctly rounded result; infinity counts as the number after the
largest. `max_ulp` is of results that are not correctly rounded, `mean_ulp` of all that are numbers; NaN on one side
alone is counted apart. Ops with few inputs come first; `--skip-done` leaves out what the FILE of an earlier run has with
as many inputs. `--draw` prints the first random inputs.
"""

import argparse
import json
import math
import re
import sys
import time

import script


def count(text):
    """For `type=`: a number above 0, also as `2^N`."""
    found = 1 << int(text[2:]) if text.startswith("2^") else int(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return found


def parser():
    parser = script.parser(__doc__)
    parser.add_argument("--json", type=script.output)
    parser.add_argument("--op", type=script.pattern, default=".*")
    parser.add_argument("--ops", type=lambda text: text.split(","))
    parser.add_argument("--skip-done", action="append", default=[], metavar="FILE")
    parser.add_argument("--pairs", type=count, default=1 << 26)
    parser.add_argument("--chunk", type=count, default=1 << 26)
    parser.add_argument("--budget-s", type=float, default=math.inf)
    parser.add_argument("--sample", dest="step", action="store_const", const=257, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--draw", action="store_true")
    return parser


# Before PyTorch is imported: --help needs none.
OPTIONS = parser().parse_args() if __name__ == "__main__" else None
torch = script.require("torch")
F = torch.nn.functional
import gradient_steps  # noqa: E402
import torch_functions  # noqa: E402
from gradient_steps import Step, f32  # noqa: E402

# Stored digits, least exponent, largest number.
TYPES = {
    "f32": (torch.float32, 23, -126, torch.finfo(torch.float32).max),
    "f16": (torch.float16, 10, -14, 65504.0),
    "bf16": (torch.bfloat16, 7, -126, torch.finfo(torch.bfloat16).max),
}
# The list of tests/src/accuracy/draw.rs.
GRID = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    0.1,
    -0.1,
    1.5,
    2.5,
    7.0,
    -7.0,
    10.0,
    100.0,
    -100.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    math.inf,
    -math.inf,
    math.nan,
    65504.0,
    57344.0,
    448.0,
    1e5,
    1e20,
    -1e20,
    0.99999994,
    1.0000001,
    16777216.0,
    16777217.0,
    2147483648.0,
    0.3,
    0.7,
    0.499,
    1e-7,
    33.0,
]
# What all codes of x are multiplied with in gradients of 16 bits: the list of tests/src/accuracy/draw.rs.
GRADS = [
    0.0, 1.0, -1.0, 0.7, -1.6, 3.0, 100.0, -0.01, 1e-7, 65504.0, 1.1754944e-38, -3.3895314e38, math.inf, -math.inf, math.nan,
    -0.0,
]
CODES = 1 << 16
SLOPE = torch.tensor(0.01, dtype=torch.float32).item()


def softplus(x):
    return torch.where(x > 20, x, torch.log1p(torch.exp(x)))


def gelu(x):
    return 0.5 * x * torch.special.erfc(-x * math.sqrt(0.5))


def gelu_tanh(x):
    return x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def silu(x):
    return x / (1 + torch.exp(-x))


def hardswish(x):
    product = x * (x + 3).clamp(0, 6)
    return torch.where(torch.isinf(product.float()), product.float().double(), product) / 6


def nan_to_num(x, dtype):
    largest = torch.finfo(dtype).max
    return torch.nan_to_num(x, 0.0, largest, -largest)


def of(names, references, others):
    """(PyTorch's function, its reference in float64: the same where there is none) of each name."""
    return {name: (others.get(name) or torch_functions.function(name), references.get(name)) for name in names.split()}


ONE = of(
    """exp log sqrt rsqrt cube abs neg reciprocal sign sin cos floor ceil round round_decimals trunc erf log1p expm1 relu gelu
    gelu_tanh silu sigmoid tanh leaky_relu elu selu hardswish hardsigmoid hardtanh softplus mish logical_not isnan isinf
    isfinite nan_to_num clamp""",
    {
        "gelu": gelu,
        "gelu_tanh": gelu_tanh,
        "silu": silu,
        "leaky_relu": lambda x: torch.where(x > 0, x, x * SLOPE),
        "hardswish": hardswish,
        # PyTorch's kernel multiplies by 1/6 as f32 holds it, also in float64.
        "hardsigmoid": lambda x: (x + 3).clamp(0, 6) / 6,
        "softplus": softplus,
        "mish": lambda x: x * torch.tanh(torch.log1p(torch.exp(x))),
        "nan_to_num": nan_to_num,
    },
    {"clamp": lambda x: torch.clamp(x, -math.inf, math.inf), "cube": lambda x: x**3},
)


def floor_divide(a, b):
    m = torch.fmod(a, b)
    q = f32(f32(a - m) / b)
    q = torch.where((m != 0) & ((b < 0) != (m < 0)), f32(q - 1), q)
    floor = torch.floor(q)
    floor = torch.where(q - floor > 0.5, floor + 1, floor)
    floor = torch.where(q == 0, torch.copysign(torch.zeros_like(q), a / b), floor)
    return torch.where(b == 0, a / b, floor)


def remainder(a, b):
    m = torch.fmod(a, b)
    return torch.where((m != 0) & ((b < 0) != (m < 0)), m + b, m)


def lerp(a, b, weight):
    distance = f32(b - a)
    return f32(torch.where(weight.abs() < 0.5, weight * distance + a, b - distance * f32(1 - weight)))


def gated(activation):
    def reference(gate, value):
        activated = f32(activation(gate))
        tiny = (activated.abs() < 2.0**-126) & ((activated != 0) | (gate != 0))
        return activated * value, ~tiny

    return reference


SEVERAL = of(
    """add sub mul div div_trunc floor_divide remainder pow maximum minimum eq ne gt lt ge le logical_and logical_or prelu
    silu_and_mul gelu_and_mul gelu_tanh_and_mul lerp clamp_tensor where""",
    {
        "div_trunc": lambda a, b: torch.trunc(f32(a / b)),
        "floor_divide": floor_divide,
        "remainder": remainder,
        "prelu": lambda x, weight: torch.where(x > 0, x, weight * x),
        "silu_and_mul": gated(silu),
        "gelu_and_mul": gated(gelu),
        "gelu_tanh_and_mul": gated(gelu_tanh),
        "lerp": lerp,
    },
    {
        # Every element a channel of its own.
        "prelu": lambda x, weight: F.prelu(x[None], weight)[0],
        **{f"{name}_and_mul": torch_functions.function(f"{name}_and_mul_pair") for name in ("silu", "gelu", "gelu_tanh")},
    },
)
THREE = {"lerp", "clamp_tensor", "where"}
NOT_EXACT = {"floor_divide", "pow", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}


def gradients(op):
    """`op`'s gradients by autograd, of every operand."""

    def backward(grad, *operands):
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in operands]
            return torch.autograd.grad(op(*leaves), leaves, grad)

    return backward


# name: (PyTorch's gradients, the formulas, the names of several results, their bound)
GRADIENTS = {}
for _name, (_formula, _bound) in gradient_steps.ONE.items():
    _steps = lambda grad, x, formula=_formula: (formula(grad, x),)  # noqa: E731
    GRADIENTS[f"{_name}_backward"] = gradients(ONE[_name][0]), _steps, None, _bound
for _name, (_formula, _results, _bound) in gradient_steps.several(floor_divide).items():
    GRADIENTS[f"{_name}_backward"] = gradients(SEVERAL[_name][0]), _formula, _results, _bound


def results_of(name):
    """The names of an op's rows."""
    results = GRADIENTS[name][2] if name in GRADIENTS else None
    return [f"{name}/{result}" for result in results] if results else [name]


def operands_of(name):
    """How many operands an op has."""
    if name in GRADIENTS:
        name = name.removesuffix("_backward")
        return 1 + (1 if name in ONE else 3 if name in THREE else 2)
    return 1 if name in ONE else 3 if name in THREE else 2


def signed(x):
    return x - (1 << 64) if x >= 1 << 63 else x


def shifted(z, by):
    """A logical shift to the right."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def mix(z):
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def words(start, end, operand, device):
    i = torch.arange(start, end, dtype=torch.int64, device=device)
    return mix((4 * i + operand + 1) * signed(0x9E3779B97F4A7C15))


def drawn(start, end, operand, dtype, device):
    """Random elements: bit patterns and near-normal values by turns."""
    word = words(start, end, operand, device)
    if dtype == torch.bool:
        return (word & 1).bool()
    size = dtype.itemsize
    bits = word.view({4: torch.int32, 2: torch.int16}[size])[:: 8 // size].contiguous().view(dtype)
    total = word.view(torch.uint8).view(-1, 8).sum(1, dtype=torch.int64)
    near = (((total - 1020) << 24) + shifted(mix(word), 40)).double() * 2.0**-30
    even = (torch.arange(start, end, device=device) & 1) == 0
    return torch.where(even, bits, near.float().to(dtype))


def with_codes(start, end, dtype, device, grads):
    """Pairs `start..end` of a grad and every code of x: of the grads that are given, or of every code too."""
    i = torch.arange(start, end, dtype=torch.int64, device=device)

    def element(code):
        return code.view(torch.int16)[::4].contiguous().view(dtype)

    first = element(i // CODES) if grads is None else grads[i // CODES]
    return [first, element(i % CODES)]


def tuples(name, kind, start, end, options):
    """Inputs `start..end`: the grid's tuples, then random ones."""
    operands, side, dtype, device = operands_of(name), len(GRID), TYPES[kind][0], options.device
    of_codes = name in GRADIENTS and operands == 2 and kind != "f32"
    if of_codes and options.pairs >= 1 << 32:
        return with_codes(start, end, dtype, device, None)
    grid = len(GRADS) * CODES if of_codes else side**operands
    parts = []
    if start < grid and of_codes:
        grads = torch.tensor(GRADS, dtype=torch.float32, device=device).to(dtype)
        parts.append(with_codes(start, min(end, grid), dtype, device, grads))
    elif start < grid:
        i = torch.arange(start, min(end, grid), device=device)
        values = torch.tensor(GRID, dtype=torch.float32, device=device)
        kinds = [torch.bool if name == "where" and k == 0 else dtype for k in range(operands)]
        parts.append([values.to(kinds[k])[i // side ** (operands - 1 - k) % side] for k in range(operands)])
    if end > grid:
        begin = max(start, grid) - grid
        kinds = [torch.bool if name == "where" and k == 0 else dtype for k in range(operands)]
        parts.append([drawn(begin, end - grid, k, kinds[k], device) for k in range(operands)])
    return [torch.cat(part) for part in zip(*parts)]


def ulp_at(value, digits, least, largest):
    exponent = (value.abs().clamp(max=largest).view(torch.int64) >> 52).clamp(min=least + 1023)
    return ((exponent - digits) << 52).view(torch.float64)


class Stats:
    """The measures of one op in one type, kept on the device."""

    def __init__(self, kind, device):
        _, self.digits, self.least, self.largest = TYPES[kind]
        zero = torch.zeros((), dtype=torch.float64, device=device)
        self.sum, self.worst = zero.clone(), zero.clone()
        self.compared, self.measured, self.wrong, self.wrong_nan = (zero.long() for _ in range(4))
        self.at = None

    def add(self, got, exact, inputs, keep=None, allowed=None):
        keep = torch.ones_like(got, dtype=torch.bool) if keep is None else keep
        self.compared += keep.sum()
        if got.dtype == torch.bool:
            self.wrong += ((got != exact.bool()) & keep).sum()
            return
        got = got.double()
        # The exact value's own binade, infinities included, then ties to even.
        ulp = ulp_at(exact, self.digits, self.least, 2.0**1000)
        nearest = torch.round(exact / ulp) * ulp
        beyond = self.largest + 2.0 ** (math.frexp(self.largest)[1] - 1 - self.digits)
        nearest = torch.where(
            nearest.abs() >= beyond, torch.copysign(torch.full_like(nearest, math.inf), nearest), nearest
        )
        nan, got_nan = torch.isnan(exact), torch.isnan(got)
        right = ((got == nearest) & (torch.signbit(got) == torch.signbit(nearest))) | (nan & got_nan)
        distance = (got.clamp(-beyond, beyond) - exact.clamp(-beyond, beyond)).abs()
        distance = distance / ulp_at(nearest, self.digits, self.least, self.largest)
        valid = ~nan & ~got_nan & keep
        self.measured += valid.sum()
        self.sum += torch.where(valid, distance, 0.0).sum()
        self.wrong += (~right & keep).sum()
        self.wrong_nan += ((nan != got_nan) & keep).sum()
        counts = valid & ~right
        if allowed is not None:
            counts &= ~((got - exact).abs() <= allowed)
        largest, index = torch.where(counts, distance, 0.0).max(0)
        at = torch.stack([x[index].double() for x in inputs])
        self.at = at if self.at is None else torch.where(largest > self.worst, at, self.at)
        self.worst = torch.maximum(self.worst, largest)

    def row(self):
        measured = max(self.measured.item(), 1)
        return {
            "compared": self.compared.item(),
            "max_ulp": self.worst.item(),
            "mean_ulp": self.sum.item() / measured,
            "not_rounded": self.wrong.item(),
            "wrong_nan": self.wrong_nan.item(),
            "worst": [] if self.at is None else [f"{x:e}" for x in self.at.tolist()],
        }


def inputs_of(name, kind, options):
    """How many inputs an op is run on in a type."""
    if name in ONE:
        step = options.step if kind == "f32" else 1
        return -(-(1 << (8 * TYPES[kind][0].itemsize)) // step)
    random = options.pairs if kind == "f32" else min(options.pairs, 1 << 28)
    operands = operands_of(name)
    if name in GRADIENTS and operands == 2 and kind != "f32":
        return 1 << 32 if options.pairs >= 1 << 32 else len(GRADS) * CODES + random
    return len(GRID) ** operands + (random if operands == 2 else random // 4)


def is_done(name, kind, options, done):
    """True if an earlier run has the op in the type, on as many inputs."""
    rows = [done.get((result, kind)) for result in results_of(name)]
    tried = [max(row.get("inputs", 0), row["compared"]) if row else 0 for row in rows]
    return min(tried) >= inputs_of(name, kind, options)


def sweep_one(name, kind, options):
    op, reference = ONE[name]
    dtype = TYPES[kind][0]
    step = options.step if kind == "f32" else 1
    total = inputs_of(name, kind, options)
    stats = Stats(kind, options.device)
    for start in range(0, total, options.chunk):
        codes = torch.arange(start, min(start + options.chunk, total), dtype=torch.int64, device=options.device) * step
        integer = {4: torch.int32, 2: torch.int16}[dtype.itemsize]
        x = codes.view(integer)[:: 8 // dtype.itemsize].contiguous().view(dtype)
        wide = x.double()
        exact = (reference or op)(wide) if name != "nan_to_num" else nan_to_num(wide, dtype)
        stats.add(op(x), exact, [x])
    return stats.row() | {"inputs": total, "operands": 1, "all": step == 1}


def sweep_several(name, kind, options):
    op, reference = SEVERAL[name]
    total = inputs_of(name, kind, options)
    stats = Stats(kind, options.device)
    for start in range(0, total, options.chunk):
        inputs = tuples(name, kind, start, min(start + options.chunk, total), options)
        wide = [x if x.dtype == torch.bool else x.double() for x in inputs]
        exact, keep = (reference or op)(*wide), None
        if isinstance(exact, tuple):
            exact, keep = exact
        if kind != "f32" and name not in NOT_EXACT and exact.dtype == torch.float64:
            exact = f32(exact)
        stats.add(op(*inputs), exact, inputs, keep)
    return stats.row() | {"inputs": total, "operands": operands_of(name), "all": False}


def sweep_gradients(name, kind, options):
    """A row for each gradient."""
    op, formula, _, bound = GRADIENTS[name]
    total, names = inputs_of(name, kind, options), results_of(name)
    stats = [Stats(kind, options.device) for _ in names]
    # Of several results more is in memory at a time.
    chunk = max(1, options.chunk // (2 * len(names)))
    for start in range(0, total, chunk):
        inputs = tuples(name, kind, start, min(start + chunk, total), options)
        wide = [x.double() for x in inputs]
        keep = None
        if name == "pow_backward" and kind != "f32":
            # pointwise counts such exponents as even, and leaves them out.
            keep = ~((wide[2].abs() >= 65536) & torch.signbit(wide[1]))
        exact = formula(*(Step(x) for x in wide))
        for result, (got, exact) in enumerate(zip(op(*inputs), exact)):
            allowed = gradient_steps.allowed(name.removesuffix("_backward"), result, bound, kind, wide)
            exact = exact.value.expand_as(got)
            stats[result].add(got, exact, inputs[:3], keep, allowed)
    more = {"inputs": total, "operands": operands_of(name), "all": total == 1 << 32}
    return [{"op": row} | one.row() | more for row, one in zip(names, stats)]


def main():
    options = OPTIONS
    if options.device == "cuda":
        script.require_gpu(torch)
    if options.draw:
        for k in range(2):
            print(
                [hex(x & 0xFFFFFFFF) for x in drawn(0, 4, k, torch.float32, options.device).view(torch.int32).tolist()]
            )
        return
    device = torch.cuda.get_device_name(0) if options.device == "cuda" else options.device
    print(f"torch {torch.__version__}, {device}", file=sys.stderr)
    if unknown := set(options.ops or []) - {*ONE, *SEVERAL, *GRADIENTS}:
        parser().error(f"no op {', '.join(sorted(unknown))}")
    names = [name for name in [*ONE, *SEVERAL, *GRADIENTS] if re.fullmatch(options.op, name)]
    names = [name for name in names if options.ops is None or name in options.ops]
    if not names:
        parser().error("no op has such a name")
    done = {}
    for path in options.skip_done:
        done |= script.read(path, lambda text: {(row["op"], row["dtype"]): row for row in json.loads(text)["rows"]})
    jobs = []
    for name in names:
        kinds = [kind for kind in TYPES if not is_done(name, kind, options, done)]
        if kinds:
            jobs.append((sum(inputs_of(name, kind, options) for kind in kinds), name, kinds))
    jobs.sort(key=lambda job: job[0])
    begun, rows, spent, whole = time.time(), [], 0, sum(cost for cost, _, _ in jobs)
    for at, (cost, name, kinds) in enumerate(jobs):
        if time.time() - begun > options.budget_s:
            print(f"left out, the time being spent: {name}", file=sys.stderr)
            continue
        for kind in kinds:
            start = time.time()
            if name in GRADIENTS:
                found = sweep_gradients(name, kind, options)
            else:
                found = [(sweep_one if name in ONE else sweep_several)(name, kind, options)]
            for row in found:
                row = {"op": name, "dtype": kind} | row | {"seconds": time.time() - start}
                rows.append(row)
                share = 1 - row["not_rounded"] / max(row["compared"], 1)
                print(
                    f"{row['op']:23} {kind:5} max {row['max_ulp']:.4f} ULP, mean {row['mean_ulp']:.4f}, "
                    f"{100 * share:.4f} % rounded, {row['wrong_nan']} other NaN, at {' '.join(row['worst'])}, "
                    f"{row['seconds']:.1f} s",
                    flush=True,
                )
        spent += cost
        seconds = time.time() - begun
        more = seconds * (whole - spent) / spent
        print(f"{at + 1} of {len(jobs)} ops, {seconds:.0f} s, about {more:.0f} s more", file=sys.stderr, flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"torch": torch.__version__, "device": device, "rows": rows}, file, indent=1)
    print(f"{len(rows)} rows, {time.time() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    script.run(main)
