"""The functions of a library: made of a template, so that each has its own signature and no detour.

A function is the usual case, as short as can be, and `Calls.general` for all others.
"""

import functools
import inspect
import linecache

import torch
from torch import Tensor, is_grad_enabled  # noqa: F401  what the templates use
from torch.autograd import forward_ad  # noqa: F401

from . import _signatures
from ._autograd import functorch_active as _functorch_active  # noqa: F401

increment_version = torch._C._increment_version
_dynamo = torch.compiler.is_dynamo_compiling
_autocast = torch.is_autocast_enabled

_FUNCTION = """
def make(CALLS, KERNEL, DIRECT, OUT, APPLY, PLAIN, PUBLIC, INPLACE, KERNELS, OUTS):
    DTYPES, FLOATS = CALLS.dtypes, CALLS.floats
{made}    def {name}({signature}):
{seed}        if {usual}:
            if out is None:
{grad}                return KERNEL({arguments}) if _dynamo() else DIRECT({arguments})
            if {fits}:
                try:
                    OUT({arguments}, out)
                except RuntimeError:
                    pass  # the general way resizes `out`, or has torch's words for it
                else:
                    increment_version((out,))
                    return out
{number}{inplace}        if _dynamo():
            return PUBLIC({passed}{out_passed})
        return CALLS.general(({operands},), ({params}), out)
    return {name}
"""

_GRAD = """                if ({requires}) and is_grad_enabled():
                    if _dynamo():
                        return PUBLIC({passed})
                    return APPLY({arguments}) if _functorch_active() else PLAIN({arguments})
                if forward_ad._current_level >= 0 or _functorch_active():
                    return CALLS.call({arguments})
"""

# A number beside float tensors of one type, which keep it.
_NUMBER = """        if {usual}:
            if out is None:
{grad}                return NUMBER_{at}({arguments}) if _dynamo() else DIRECT_{at}({arguments})
            if {fits}:
                try:
                    OUT_{at}({arguments}, out)
                except RuntimeError:
                    pass
                else:
                    increment_version((out,))
                    return out
"""

_GENERATOR = """
def make(OUT, PUBLIC):
    def {name}({signature}, out=None):
        if _dynamo():
            return PUBLIC({passed}, **({{}} if out is None else {{"out": out}}))
        if out is None:
            out = torch.empty(size, dtype=dtype or torch.get_default_dtype(), device=device)
        OUT({params}out)
        return out
    return {name}
"""

_NUMBER_INPLACE = """        if {usual}:
            try:
                OUT_{at}({arguments}, {first})
            except RuntimeError:
                pass
            else:
                increment_version(({first},))
                return {first}
"""

_INPLACE = """
def make(CALLS, OUT, PUBLIC, OUTS):
    DTYPES, FLOATS = CALLS.dtypes, CALLS.floats
{made}    def {name}_({signature}):
        if _dynamo():
            return PUBLIC({passed})
        if {usual}:
            try:
                OUT({arguments}, {first})
            except RuntimeError:
                pass  # the general way has torch's words for it
            else:
                increment_version(({first},))
                return {first}
{number}        return CALLS.inplace(({operands},), ({params}))
    return {name}_
"""


def new_seed(input):
    """A place in a random sequence, drawn from the generator of the operand's device.

    There a kernel reads it when it runs, so that a CUDA graph draws anew at each replay.
    """
    return torch.randint(2**63 - 1, (2,), device=input.device if isinstance(input, Tensor) else "cpu")


def _compile(source, *captured):
    scope, file = {}, f"<pointwise.{source.split('def ')[2].partition('(')[0]}>"
    # Where tracebacks and debuggers look for the lines.
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    # Its functions have this module's globals, which torch.compile finds by its name.
    exec(compile(source, file, "exec"), globals(), scope)
    return scope["make"](*captured)


def _parts(calls):
    op, arguments = calls.op, calls.arguments
    count = len(op.operands)
    operands = [a.name for a in arguments[:count]]
    params = [a.name for a in arguments[count:]]
    return operands, params


def _usual(calls, operands):
    """Conditions of the usual case: tensors of one element type that the op takes, bools apart."""
    tests = [f"isinstance({o}, Tensor)" for o in operands]
    values = [operands[k] for k in calls.values]
    tests += [f"{o}.dtype is torch.{operand.dtype}" for o, operand in zip(operands, calls.op.operands) if operand.dtype]
    tests += [f"{values[0]}.dtype in DTYPES"] if values else []
    tests += [f"{o}.dtype is {values[0]}.dtype" for o in values[1:]]
    return tests + (['not _autocast("cuda")'] if calls.autocast else [])


def _usual_beside(calls, operands, at):
    """Conditions of the usual case with operand `at` a number: float tensors of one type beside it."""
    number = operands[at]
    tests = [f"({number}.__class__ is float or {number}.__class__ is int)"]
    others = [k for k in range(len(operands)) if k != at]
    tests += [f"isinstance({operands[k]}, Tensor)" for k in others]
    fixed = [(operands[k], calls.op.operands[k].dtype) for k in others]
    tests += [f"{o}.dtype is torch.{dtype}" for o, dtype in fixed if dtype]
    values = [operands[k] for k in others if k in calls.values]
    tests += [f"{values[0]}.dtype in FLOATS"]
    tests += [f"{o}.dtype is {values[0]}.dtype" for o in values[1:]]
    return tests + (['not _autocast("cuda")'] if calls.autocast else [])


def _numbers(calls):
    """The operands that a kernel takes as a number, each alone, beside another one with the op's type."""
    return [k for k in calls.maybe_numbers if (k,) in calls.kernels and any(v != k for v in calls.values)]


def _fits(calls, operands, out, number=None):
    """Conditions of the usual case for a tensor to write to: it has the result's type, and none a gradient.

    The kernel finds out before it writes if the tensor has the result's shape.
    """
    fixed = calls.op.results[0].dtype or (None if calls.values else calls.op.dtypes[0])
    values = [operands[k] for k in calls.values if k != number]
    operands = [o for k, o in enumerate(operands) if k != number]
    made = f"torch.{fixed}" if fixed else f"{values[0]}.dtype"
    tests = [f"{out}.__class__ is Tensor"]
    tests += [f"{out}.dtype is {made}"] if made != f"{out}.dtype" else []
    tests += [f"not {o}.requires_grad" for o in dict.fromkeys([out, *operands])]
    return [*tests, f"not {out}.is_inference()", "forward_ad._current_level < 0", "not _functorch_active()"]


def function(calls, public, inplace=None):
    """The function of an op. `inplace` is its function over its first operand, for one with such an argument."""
    op, arguments = calls.op, calls.arguments
    operands, params = _parts(calls)
    first = operands[0]
    passed = _signatures.passed(arguments)
    every = ", ".join([*operands, *params])
    more = ["not inplace"] if inplace else []
    can_write = op.is_elementwise and len(op.results) == 1

    def grad(names):
        requires = " or ".join(f"{o}.requires_grad" for o in names)
        return _GRAD.format(requires=requires, passed=passed, arguments=every) if calls.apply else ""

    number = made = ""
    for at in _numbers(calls):
        made += f"    NUMBER_{at}, DIRECT_{at}, OUT_{at} = KERNELS[{at},], KERNELS[{at},]._op, OUTS[{at},]._op\n"
        fits = ["not _dynamo()", *_fits(calls, operands, "out", at)] if can_write else ["False"]
        number += _NUMBER.format(
            at=at,
            usual=" and ".join(_usual_beside(calls, operands, at) + more),
            fits=" and ".join(fits),
            grad=grad([operands[k] for k in calls.values if k != at]),
            arguments=every,
        )
    signature = _signatures.python(arguments, ["out=None"])
    if inplace:
        signature = signature.replace("*, out=None", "inplace=False, *, out=None")
    source = _FUNCTION.format(
        name=op.name,
        signature=signature,
        usual=" and ".join(_usual(calls, operands) + more),
        fits=" and ".join(["not _dynamo()", *_fits(calls, operands, "out")]) if can_write else "False",
        grad=grad([operands[k] for k in calls.values]),
        number=number,
        made=made,
        arguments=every,
        passed=passed,
        out_passed=", **({} if out is None else {'out': out})",
        operands=", ".join(operands),
        params="".join(f"{p}, " for p in params),
        seed=f"        if seed is None:\n            seed = new_seed({first})\n" if op.random else "",
        inplace=f"        if inplace:\n            return INPLACE({passed})\n" if inplace else "",
    )
    # `_op` is the call itself, for where torch.compile does not look.
    kernel, out = calls.kernel, calls.outs[()]._op
    apply = calls.apply, calls.apply and calls.apply.plain
    return _compile(source, calls, kernel, kernel._op, out, *apply, public, inplace, calls.kernels, calls.outs)


def shown(op, function):
    """The function of an op with results that only its gradient reads, which it does not return."""

    @functools.wraps(function)
    def shown(*args, out=None, **kwargs):
        if out is not None:
            raise RuntimeError(f"pointwise.{op.name} keeps results for its gradient: it does not write to `out`")
        results = function(*args, **kwargs)
        # While torch.compile traces, this is the public op, which returns no more.
        return results if _dynamo() else op.show(results)

    signature = inspect.signature(function)
    shown.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != "out"])
    return shown


def function_inplace(calls, public):
    """The function of an op over its first operand."""
    operands, params = _parts(calls)
    first = operands[0]
    can_write = calls.op.is_elementwise
    tests = _usual(calls, operands) + _fits(calls, operands, first) if can_write else ["False"]
    number = made = ""
    for at in _numbers(calls) if can_write else []:
        if at and 0 in calls.values:
            made += f"    OUT_{at} = OUTS[{at},]._op\n"
            usual = _usual_beside(calls, operands, at) + _fits(calls, operands, first, at)
            number += _NUMBER_INPLACE.format(
                at=at, usual=" and ".join(usual), first=first, arguments=", ".join([*operands, *params])
            )
    source = _INPLACE.format(
        name=calls.name,
        signature=_signatures.python(calls.arguments),
        passed=_signatures.passed(calls.arguments),
        usual=" and ".join(tests),
        made=made,
        number=number,
        arguments=", ".join([*operands, *params]),
        first=first,
        operands=", ".join(operands),
        params="".join(f"{p}, " for p in params),
    )
    return _compile(source, calls, calls.outs[()]._op, public, calls.outs)


def generator(calls, public):
    """The function of an op without operands: it makes a tensor of the sizes asked for."""
    arguments = calls.arguments
    params = [a.name for a in arguments if not a.keyword][1:]
    source = _GENERATOR.format(
        name=calls.name,
        signature=_signatures.python(arguments),
        passed=_signatures.passed(arguments),
        params="".join(f"{p}, " for p in params),
    )
    return _compile(source, calls.outs[()], public)
