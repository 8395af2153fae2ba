"""How an operand lies in a result that it is broadcast to. Imports nothing, so that it can be tested anywhere."""
import math


def kept(result, operand):
    """INNER and COLS: element i of the result takes the operand's element i / INNER % COLS; (1, 0) where both have the
    same shape. Fails unless the operand has one run of the result's dimensions, whole."""
    assert len(operand) <= len(result), f"{operand} cannot be broadcast to {result}"
    operand = (1,) * (len(result) - len(operand)) + tuple(operand)
    if operand == tuple(result):
        return 1, 0
    has = [at for at, size in enumerate(operand) if size != 1]
    if not has:
        return 1, 1
    first, last = has[0], has[-1]
    run = operand[first:last + 1]
    assert run == tuple(result[first:last + 1]), f"no kernel for {operand} broadcast to {result}"
    return math.prod(result[last + 1:]), math.prod(run)
