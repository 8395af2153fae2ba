"""The functions of a library: made of a template, so that each has its own signature and no detour.

A function is the usual case, as short as can be, and `Calls.general` for all others.
"""

import linecache

import torch
from torch import Tensor, is_grad_enabled  # noqa: F401  what the templates use

from . import _signatures

_dynamo = torch.compiler.is_dynamo_compiling
_autocast = torch.is_autocast_enabled

_FUNCTION = """
def make(CALLS, KERNEL, NUMBER, APPLY, PUBLIC, INPLACE):
    DTYPES, FLOATS = CALLS.dtypes, CALLS.floats
    def {name}({signature}):
{seed}        if {usual}:
{grad}            return KERNEL({arguments})
{number}{inplace}        if _dynamo():
            return PUBLIC({passed}{out_passed})
        return CALLS.general(({operands},), ({params}), out)
    return {name}
"""

_GRAD = """            if ({requires}) and is_grad_enabled():
                return PUBLIC({passed}) if _dynamo() else APPLY({arguments})
"""

# A float tensor and a number, which keeps its type.
_NUMBER = """        if {usual}:
{grad}            return NUMBER({arguments})
"""

_GENERATOR = """
def make(OUT, PUBLIC):
    def {name}({signature}, out=None):
        if _dynamo():
            return PUBLIC({passed}, **({{}} if out is None else {{"out": out}}))
        if out is None:
            out = torch.empty(size, dtype=dtype or torch.get_default_dtype(), device=device)
        OUT({params}out=out)
        return out
    return {name}
"""

_INPLACE = """
def make(CALLS, PUBLIC):
    def {name}_({signature}):
        if _dynamo():
            return PUBLIC({passed})
        return CALLS.inplace(({operands},), ({params}))
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


def function(calls, public, inplace=None):
    """The function of an op. `inplace` is its function over its first operand, for one with such an argument."""
    op, arguments = calls.op, calls.arguments
    operands, params = _parts(calls)
    first = operands[0]
    tests = ["out is None", f"isinstance({first}, Tensor)", f"{first}.dtype in DTYPES"]
    for other, operand in zip(operands[1:], op.operands[1:]):
        # Of another type, or a number: the general case.
        same = f"{other}.dtype is {first}.dtype"
        tests.append(
            f"isinstance({other}, Tensor) and {other}.dtype is torch.bool"
            if operand.is_bool
            else f"isinstance({other}, Tensor) and {same}"
        )
    if op.operands[0].is_bool:
        tests = ["out is None", *(f"isinstance({o}, Tensor)" for o in operands), f"{first}.dtype is torch.bool"]
        tests += [f"{operands[1]}.dtype in DTYPES", *(f"{o}.dtype is {operands[1]}.dtype" for o in operands[2:])]
    more = (['not _autocast("cuda")'] if calls.autocast else []) + (["not inplace"] if inplace else [])
    tests += more
    passed = _signatures.passed(arguments)
    every = ", ".join([*operands, *params])

    def grad(names):
        requires = " or ".join(f"{o}.requires_grad" for o in names)
        return _GRAD.format(requires=requires, passed=passed, arguments=every) if calls.has_gradient else ""

    number = ""
    if len(operands) == 2 and (1,) in calls.kernels:
        usual = ["out is None", f"({operands[1]}.__class__ is float or {operands[1]}.__class__ is int)"]
        usual += [f"isinstance({first}, Tensor)", f"{first}.dtype in FLOATS", *more]
        number = _NUMBER.format(usual=" and ".join(usual), grad=grad([first]), arguments=every)
    signature = _signatures.python(arguments, ["out=None"])
    if inplace:
        signature = signature.replace("*, out=None", "inplace=False, *, out=None")
    source = _FUNCTION.format(
        name=op.name,
        signature=signature,
        usual=" and ".join(tests),
        grad=grad([o for o, operand in zip(operands, op.operands) if not operand.is_bool]),
        number=number,
        arguments=every,
        passed=passed,
        out_passed=", **({} if out is None else {'out': out})",
        operands=", ".join(operands),
        params="".join(f"{p}, " for p in params),
        seed=f"        if seed is None:\n            seed = new_seed({first})\n" if op.random else "",
        inplace=f"        if inplace:\n            return INPLACE({passed})\n" if inplace else "",
    )
    return _compile(source, calls, calls.kernel, calls.kernels.get((1,)), calls.apply, public, inplace)


def function_inplace(calls, public):
    """The function of an op over its first operand."""
    operands, params = _parts(calls)
    source = _INPLACE.format(
        name=calls.name,
        signature=_signatures.python(calls.arguments),
        passed=_signatures.passed(calls.arguments),
        operands=", ".join(operands),
        params="".join(f"{p}, " for p in params),
    )
    return _compile(source, calls, public)


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
