"""PyTorch's own samples (OpInfo) through pointwise's ops: what torch's tests run, under torch's tolerances.

A sample is run forward, over non-contiguous copies, with `out=`, in place and backward, in each element type that both
have. A fixed tenth runs; `--all` runs all. `opinfo_differences.py` has the samples that may differ.
"""

from collections import Counter

import pytest
import torch
from opinfo_differences import DIFFERENCES, ROUNDED_TERMS
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import pointwise
from pointwise._torch_ops import CALLS, FUNCTIONS

DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
)
# One in so many samples runs without `--all`.
PART = 10
# What is random has no expected result, and roundings of sums have none to the bit: test_rows compares with float64.
INEXACT = {"dropout", "group_norm"}
# Functions that run an op of another name.
OPS = {"masked_fill": "where"}


def _ours(entry):
    name = entry.name.removeprefix("nn.functional.")
    # Ops on rows have no dimension to give.
    of_rows = name in CALLS and CALLS[name].op.rows
    return name if name in FUNCTIONS and name not in INEXACT and not of_rows else None


# Complex numbers are torch's alone.
ENTRIES = [entry for entry in op_db if _ours(entry) and entry.variant_test_name != "complex"]
TALLY = Counter()


def _function(entry, suffix=""):
    name = _ours(entry)
    function = FUNCTIONS.get(name + suffix)
    if name == "where" and not suffix:
        # torch's entry puts the first value first.
        return lambda input, condition, other, **more: function(condition, input, other, **more)
    return function


def _title(entry):
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def _known(values):
    """True if pointwise has the element types of all operands."""
    for x in tree_leaves(values):
        if isinstance(x, complex) or (isinstance(x, torch.Tensor) and x.dtype not in DTYPES):
            return False
        if isinstance(x, torch.Tensor) and x.dtype == torch.float64 and x.is_cuda:
            return False
    return True


def _overlaps(tensor):
    """True if elements may share memory: a dimension begins before the smaller ones end."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _copied(values, grad=False):
    """Copies of the tensors, which keep their strides unless elements overlap; of floats with a gradient to be."""

    def one(x):
        if not isinstance(x, torch.Tensor):
            return x
        if _overlaps(x):
            made = x.detach().clone(memory_format=torch.contiguous_format)
        else:
            made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            made.copy_(x.detach())
        return made.requires_grad_() if grad and made.is_floating_point() else made

    return tree_map(one, values)


def _run(function, call, more=()):
    input, args, kwargs = call
    return function(input, *args, **{**kwargs, **dict(more)})


class Refused(Exception):
    """torch has no such call."""


def _theirs(function, call, more=()):
    try:
        return _run(function, call, more)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        raise Refused from error


def _forward(entry, call, ours):
    return _run(_function(entry), call) if ours else _theirs(entry.op, call)


def _out(entry, call, ours):
    like = _theirs(entry.op, call)
    # A result with a gap between its elements.
    out = torch.empty((*like.shape, 2), dtype=like.dtype, device=like.device)[..., 0]
    run = _run if ours else _theirs
    got = run(_function(entry) if ours else entry.op, call, {"out": out})
    assert got is out, "the result is not `out`"
    return out


def _inplace(entry, call, ours):
    got = _run(_function(entry, "_"), call) if ours else _theirs(entry.inplace_variant, call)
    assert got is call[0], "the result is not the first operand"
    return got


def _gradient(entry, call, ours):
    call = _copied(call, grad=True)
    result = _run(_function(entry), call) if ours else _theirs(entry.op, call)
    if not result.requires_grad:
        return None
    leaves = [x for x in tree_leaves(call) if isinstance(x, torch.Tensor) and x.requires_grad]
    torch.manual_seed(1)
    # Drawn on the CPU: the exact result, which is made there, is of the same.
    seed = torch.randn(result.shape).to(torch.bfloat16).to(result.device, result.dtype)
    try:
        grads = torch.autograd.grad(result, leaves, seed, allow_unused=True)
    except RuntimeError as error:
        raise error if ours else Refused from error
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, grads)]


def _checks(entry, sample, dtype, device):
    """The ways to run a sample: a name, a function that runs it with ours or torch's, the call, and it strided."""
    call = (sample.input, sample.args, sample.kwargs)
    strided = sample.noncontiguous()
    strided = (strided.input, strided.args, strided.kwargs)
    yield "forward", _forward, call, strided
    yield "strided", _forward, strided, strided
    if entry.supports_out:
        yield "out", _out, call, strided
    if entry.inplace_variant and _function(entry, "_") and not sample.broadcasts_input:
        yield "inplace", _inplace, call, strided
    if entry.supports_autograd and dtype in entry.supported_backward_dtypes(device):
        yield "gradient", _gradient, call, strided
        yield "strided gradient", _gradient, strided, strided


def _in_double(call):
    """The call in float64, on the CPU."""

    def one(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().cpu().double() if x.is_floating_point() else x.detach().cpu()

    return tree_map(one, call)


def _close(got, want):
    try:
        torch.testing.assert_close(got, want, equal_nan=True, check_stride=False)
    except AssertionError:
        return False
    return True


def _errors(values, exact, dtype):
    """A mask of the values that are infinite or NaN unlike the exact ones; the relative errors of the others."""
    size = exact.abs().clamp(min=torch.finfo(dtype).tiny)
    same = (values == exact) | (values.isnan() & exact.isnan())
    errors = torch.where(same, 0.0, (values - exact).abs() / size)
    is_wild = ~errors.isfinite()
    return is_wild, torch.where(is_wild, 0.0, errors)


def _no_farther(got, want, exact):
    """True if ours is no farther from the exact value than torch's, where they differ.

    Ours is infinite or NaN without reason only where torch's is so, too, and NaN only where torch's is NaN. The sum of the
    other relative errors, where both have one, is no larger.
    """
    for ours, theirs, double in zip(*map(tree_leaves, (got, want, exact))):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return False
        if not ours.is_floating_point() or ours.dtype == torch.float64:
            return False
        different = ~torch.isclose(ours, theirs, rtol=0, atol=0, equal_nan=True)
        exact_ones = double.to(ours.dtype).double()[different.cpu()]
        values = [x.detach().cpu().double()[different.cpu()] for x in (ours, theirs)]
        (wild, far), (their_wild, their_far) = (_errors(x, exact_ones, ours.dtype) for x in values)
        nan, their_nan = (x.isnan() for x in values)
        if (wild & ~their_wild).any() or (wild & nan & ~their_nan).any():
            return False
        if not far[~their_wild].sum() <= their_far[~their_wild].sum():
            return False
    return True


def _compare(entry, run, call, strided):
    """Compares one run under torch's tolerances. What differs may pass in two ways, which are counted.

    Ours is no farther from float64 than torch's: torch's tests of its reference implementations have this rule. Or
    torch gives our result for the same operands strided: its vectorized loops treat NaN otherwise than its scalar ones.
    """
    want = run(entry, _copied(call), False)
    got = run(entry, _copied(call), True)
    if _close(got, want):
        return
    if got is not None and want is not None:
        if _no_farther(got, want, run(entry, _in_double(call), False)):
            TALLY["closer to float64 than torch"] += 1
            return
        if _close(got, run(entry, _copied(strided), False)):
            TALLY["as torch's strided"] += 1
            return
    torch.testing.assert_close(got, want, equal_nan=True, check_stride=False)


def _differences(entry, device, every):
    """Runs the samples of an entry. Returns messages by the names of those that differ, and all names that ran."""
    differing, ran = {}, set()
    for dtype in DTYPES:
        if dtype not in entry.supported_dtypes(device) or (dtype == torch.float64 and device == "cuda"):
            continue
        if dtype not in CALLS[OPS.get(_ours(entry), _ours(entry))].dtypes:
            TALLY[f"{_title(entry)}: no {dtype}"] += 1
            continue
        index = 0
        for kind in ("sample", "reference"):
            torch.manual_seed(0)
            for sample in getattr(entry, f"{kind}_inputs")(device, dtype, requires_grad=False):
                index += 1
                if not (every or index % PART == 1) or not _known((sample.input, sample.args, sample.kwargs)):
                    continue
                for check, run, call, strided in _checks(entry, sample, dtype, device):
                    name = f"{_title(entry)} {str(dtype).removeprefix('torch.')} {kind} {index} {check}"
                    state = torch.get_rng_state()
                    try:
                        _compare(entry, run, call, strided)
                        ran.add(name)
                    except Refused:
                        pass
                    except Exception as error:
                        ran.add(name)
                        differing[name] = f"{type(error).__name__}: {error}"
                    torch.set_rng_state(state)
    return differing, ran


@pytest.fixture(scope="module")
def every(request):
    return request.config.getoption("--all")


@pytest.mark.parametrize("entry", ENTRIES, ids=_title)
def test_samples(entry, device, every):
    differing, ran = _differences(entry, device, every)
    assert ran
    TALLY["ran"] += len(ran)
    TALLY["differ"] += len(differing)
    listed = {name for name in DIFFERENCES[device] if name in ran}
    new = {name: differing[name] for name in differing if name not in listed}
    assert not new, "\n".join(f"{name}: {message}" for name, message in new.items())
    always = {name for name in listed if DIFFERENCES[device][name] != ROUNDED_TERMS}
    gone = sorted(always - differing.keys())
    assert not gone, f"no longer differ, take them off the list: {gone}"


def test_few_differ():
    """At most 0.1 % of the samples that ran."""
    assert TALLY["differ"] <= TALLY["ran"] / 1000, dict(TALLY)
