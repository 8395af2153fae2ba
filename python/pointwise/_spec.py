"""The ops of a library as data, read from its description. Needs no torch."""

import functools
import json
from dataclasses import dataclass, field


# The element types of tensors with gradients.
DIFFERENTIABLE = (None, "float32", "float16", "bfloat16")


class Slot:
    """A tensor of an op, whose element type `dtype` is that of the call if None.

    Its `domain` says which elements it has beside the shape that the operands broadcast to. `elements`: one for each.
    `channel`: one for each entry of dimension 1, or one for all. `row`: one for each row; there is no last dimension, or
    one of groups. `halves`: two for each; the last dimension is twice as long.
    """

    @property
    def is_bool(self):
        """True if its elements are bools, whatever the call's are."""
        return self.dtype == "bool"

    @property
    def has_gradient(self):
        """True if it has a gradient, where the op has any."""
        return self.dtype in DIFFERENTIABLE


@dataclass(frozen=True)
class Operand(Slot):
    """A tensor that an op reads. One that shares its gradient has that of the operand before it."""

    name: str
    dtype: str | None
    domain: str
    takes_number: bool
    shares_gradient: bool


@dataclass(frozen=True)
class Param:
    """A number that an op takes: `kind` is float, float? (None is a default of the element type), int or bool."""

    name: str
    kind: str
    default: object


@dataclass(frozen=True)
class Result(Slot):
    """A tensor that an op writes.

    A kept one is for the gradient. The gradient of a weight has the place of that operand as `weight`.
    """

    name: str
    dtype: str | None
    domain: str
    is_kept: bool
    weight: int | None

    @property
    def has_gradient(self):
        """True if gradients come from it, where the op has any."""
        return not self.is_kept and super().has_gradient


@dataclass(frozen=True)
class Kernel:
    """A way to call an op: which operands are numbers, and whether results are given."""

    number: int
    schema: str
    numbers: tuple[int, ...]
    out: bool

    @property
    def name(self):
        """The name with its overload."""
        return self.schema.partition("(")[0]


@dataclass
class Op:
    """An op. One without operands makes a tensor of a shape that comes with the call.

    One of rows (`rows`) reduces over them: a row is a group of `group` neighbours along the last dimension, or all of it
    if that is 0. `backward` names the op of its gradients; `gradient` says that it is one.
    """

    name: str
    rows: bool
    group: int
    operands: list[Operand]
    params: list[Param]
    results: list[Result]
    dtypes: tuple[str, ...]
    int_to_float: bool
    promotes: bool
    refuses_bool: bool
    constant: bool
    random: bool
    shared_words: bool
    indices: int
    double: bool
    doc: str
    backward: str | None
    gradient: bool
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def weights(self):
        """The operands whose gradients are sums over rows, if each is one row or one element."""
        return [result.weight for result in self.results if result.weight is not None]

    def has(self, domain):
        """True if an operand has elements of a domain."""
        return any(operand.domain == domain for operand in self.operands)

    @functools.cached_property
    def is_of_elements(self):
        """True if results have the shape that the operands broadcast to: it has neither rows nor halves."""
        return not self.rows and not self.has("halves")

    @functools.cached_property
    def is_elementwise(self):
        """True if all tensors have elements of that shape."""
        return bool(self.operands) and self.is_of_elements and not self.has("channel")

    def lacks(self, slot):
        """The dimensions that a tensor has less than the others of a call: the last, if each row has it once."""
        return int(slot.domain == "row" and not self.group)

    @property
    def shown(self):
        """The number of results that its function returns: all but those that are kept."""
        return sum(not result.is_kept for result in self.results)

    def show(self, results):
        """Its results as its function returns them."""
        made = tuple(y for y, result in zip(results, self.results) if not result.is_kept)
        return made[0] if self.shown == 1 else made


def _default(param):
    if param["default"] is None:
        return None
    return {"float": float, "int": int, "bool": bool}[param["kind"]](param["default"])


@dataclass
class Description:
    """A library: its ops by name, the kernels of its rotary embedding, and the named variants of that."""

    ops: dict[str, Op]
    rope_kernels: list[Kernel]
    rope: list[dict]


def parse(description):
    """Reads a description."""
    data = json.loads(description)
    rope_kernels = []
    ops = {}
    for op in data["ops"]:
        name = op["name"]
        ops[name] = Op(
            name=name,
            rows=op["rows"],
            group=op["group"],
            operands=[
                Operand(o["name"], o["dtype"], o["domain"], o["number"], o["shares"]) for o in op["operands"]
            ],
            params=[Param(p["name"], p["kind"], _default(p)) for p in op["params"]],
            results=[Result(r["name"], r["dtype"], r["domain"], r["kept"], r["weight"]) for r in op["results"]],
            dtypes=tuple(op["dtypes"]),
            **{key: op[key] for key in ("int_to_float", "promotes", "refuses_bool", "constant", "indices")},
            random=op["random"],
            shared_words=op["shared_words"],
            double=op["double"],
            doc=op["doc"],
            backward=op["backward"],
            gradient=op["gradient"],
        )
    for kernel in data["kernels"]:
        row = Kernel(kernel["number"], kernel["schema"], tuple(kernel["numbers"]), kernel["out"])
        (ops[kernel["op"]].kernels if kernel["op"] in ops else rope_kernels).append(row)
    return Description(ops, rope_kernels, data["rope"])
