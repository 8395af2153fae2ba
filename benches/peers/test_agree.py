#!/usr/bin/env python3
"""Tests of agree.py and runs.py: `python3 benches/peers/test_agree.py`. Those with tensors need PyTorch, on the CPU, and are left
out without it."""
import importlib.util
import unittest

import agree
import runs
from agree import Counts, verdict

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Verdicts(unittest.TestCase):
    def test_floats_may_have_outliers(self):
        self.assertIsNone(verdict(Counts(total=1 << 20, far=100), "add", "f32"))
        self.assertIn("200 of 1048576 differ", verdict(Counts(total=1 << 20, far=200, first=7), "add", "f32"))
        self.assertIsNone(verdict(Counts(total=1 << 20, far=200), "remainder", "f32"))
        self.assertIsNotNone(verdict(Counts(total=1000, far=2), "remainder", "f32"))
        self.assertIsNone(verdict(Counts(total=1000, far=2), "remainder", "bf16"))

    def test_one_result_that_is_not_written_is_one_too_many(self):
        self.assertIn("1 NaN or not written", verdict(Counts(total=1 << 28, nan=1), "add", "f32"))
        self.assertIn("1 infinite", verdict(Counts(total=1 << 28, infinite=1), "add", "f32"))

    def test_integers_and_bools_are_exact(self):
        self.assertIsNone(verdict(Counts(total=1 << 28), "eq", None))
        self.assertIsNotNone(verdict(Counts(total=1 << 28, far=1), "eq", None))
        self.assertIsNotNone(verdict(Counts(total=1 << 28, far=1), "floor_divide", None))

    def test_pieces_add_up(self):
        counts = Counts()
        counts.add(Counts(total=10), 0)
        counts.add(Counts(total=10, far=2, first=3), 10)
        counts.add(Counts(total=5, nan=1, first=0), 20)
        self.assertEqual(counts, Counts(total=25, far=2, nan=1, first=13))

    def test_bounds(self):
        self.assertLess(agree.bound("add", "f32"), agree.bound("add", "bf16"))
        self.assertEqual(agree.bound("add", "i32"), 0)


class Runs(unittest.TestCase):
    def broadcast(self, result, operand):
        """The operand's index of each result by INNER and COLS, and by its definition."""
        inner, cols = runs.kept(result, operand)
        count = 1
        for size in result:
            count *= size
        ours = [i if cols == 0 else i // inner % cols for i in range(count)]
        padded = (1,) * (len(result) - len(operand)) + operand
        theirs = []
        for i in range(count):
            at, step, rest = 0, 1, i
            for whole, own in zip(reversed(result), reversed(padded)):
                at += (rest % whole if own > 1 else 0) * step
                rest, step = rest // whole, step * own
            theirs.append(at)
        return ours, theirs

    def test_every_result_takes_its_element(self):
        cases = [((6, 4), (6, 4)), ((6, 4), (1, 4)), ((6, 4), (4,)), ((6, 4), (6, 1)), ((2, 3, 5, 4), (3, 1, 1)),
                 ((2, 3, 5, 4), (3, 5, 1)), ((2, 3), ()), ((2, 3), (1, 1))]
        for result, operand in cases:
            ours, theirs = self.broadcast(result, operand)
            self.assertEqual(ours, theirs, (result, operand))

    def test_both_operands_of_an_outer_product(self):
        self.assertEqual(runs.kept((64, 32), (64, 1)), (32, 64))
        self.assertEqual(runs.kept((64, 32), (1, 32)), (1, 32))

    def test_two_runs_have_no_kernel(self):
        with self.assertRaises(AssertionError):
            runs.kept((2, 3, 4), (2, 1, 4))


@unittest.skipUnless(HAS_TORCH, "PyTorch is missing")
class Tensors(unittest.TestCase):
    def setUp(self):
        import torch

        self.torch = torch
        self.piece, agree.PIECE = agree.PIECE, 1000

    def tearDown(self):
        agree.PIECE = self.piece

    def want(self, dtype="float32"):
        self.torch.manual_seed(1)
        return (self.torch.randn(40, 100) * 100).to(getattr(self.torch, dtype))

    def test_the_same_in_every_type(self):
        for dtype, name in (("float32", "f32"), ("float16", "f16"), ("bfloat16", "bf16"), ("int32", "i32"), ("bool", "bool")):
            want = self.want(dtype)
            self.assertIsNone(agree.compare(want.clone(), want, "add", name))
        want = self.torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
        self.assertIsNone(agree.compare(want.clone(), want, "add", "f32"))

    def test_what_differs(self):
        want = self.want()
        for change in (float("nan"), float("inf")):
            got = want.clone()
            got[30, 7] = change
            self.assertIn("the first at 3007", agree.compare(got, want, "add", "f32"))
        self.assertIsNotNone(agree.compare(want + 1, want, "add", "f32"))
        self.assertIn("shape", agree.compare(want[:39], want, "add", "f32"))
        self.assertIn("type", agree.compare(want.half(), want, "add", "f16"))
        infinite = self.torch.tensor([float("inf")])
        self.assertIsNotNone(agree.compare(-infinite, infinite, "add", "f32"))

    def test_a_part_that_is_not_written_is_seen(self):
        for dtype, name in (("float32", "f32"), ("bfloat16", "bf16"), ("int32", "i32"), ("int64", "i64"), ("bool", "bool")):
            want = self.want(dtype)
            got = want.clone()
            agree.spoil(got, want)
            self.assertFalse((got == want).any(), dtype)
            # All but the last element.
            got.view(-1)[:-1] = want.view(-1)[:-1]
            self.assertIsNotNone(agree.compare(got, want, "add", name), dtype)
        want = self.torch.full((4,), float("nan"))
        got = want.clone()
        agree.spoil(got, want)
        self.assertIsNotNone(agree.compare(got, want, "add", "f32"))

    def test_an_outer_product_of_which_one_column_is_written(self):
        want = self.torch.randn(64, 1) + self.torch.randn(1, 64)
        got = self.torch.empty(64, 64)
        agree.spoil(got, want)
        got.view(-1)[:64] = want.view(-1)[:64]
        self.assertIn("4032 of 4096 differ", agree.compare(got, want, "add", "f32"))

    def test_dropout(self):
        x = self.torch.randn(200, 500)
        kept = self.torch.rand(200, 500) >= 0.3
        self.assertIsNone(agree.dropped(x * kept / 0.7, x, 0.3, "f32"))
        self.assertIn("dropped", agree.dropped(x * kept / 0.7, x, 0.5, "f32"))
        self.assertIsNotNone(agree.dropped(x * kept, x, 0.3, "f32"))
        self.assertIsNotNone(agree.dropped(x / 0.7, x, 0.3, "f32"))


if __name__ == "__main__":
    unittest.main()
