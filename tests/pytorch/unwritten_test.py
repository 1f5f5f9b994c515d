#!/usr/bin/env python3
"""What recipes do not write to on the host: large casts, copies and zeros alone, each counted as if it were there.

    unwritten_test.py

Runs on the host, without a card and without `shardscope dryrun`.
"""
import importlib.util, os, pathlib, tempfile, unittest

import torch

HERE = pathlib.Path(__file__).parent
LARGE = 16 << 20  # elements; in fp32 64 MiB


def unwritten_of(folder):
    place = HERE.parent.parent / "profiler/dryrun/python/unwritten.py"
    spec = importlib.util.spec_from_file_location("unwritten", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.prepare(torch, folder)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Unwritten(unittest.TestCase):
    folder = tempfile.TemporaryDirectory()
    host = unwritten_of(folder.name)

    def test_large_copies_take_no_room_and_are_counted(self):
        before = resident()
        weight = torch.empty(LARGE)
        made = [weight.half(), weight.to(torch.bfloat16), weight.clone(), torch.zeros(LARGE), torch.zeros_like(weight)]
        made[2].copy_(made[3])
        made[3].mul_(2).zero_()
        self.assertEqual([each.dtype for each in made], [torch.float16, torch.bfloat16] + 3 * [torch.float32])
        self.assertLess(resident() - before, 4 << 20)
        self.host.look()
        taken = 4 * LARGE * 4  # two of half the size, and three
        self.assertGreaterEqual(self.host.most - before, taken)
        self.assertLess(self.host.most - before, taken + (16 << 20))
        self.assertEqual(int(pathlib.Path(self.host.path).read_text()), self.host.most)

    def test_what_is_gone_is_counted_no_longer(self):
        kept = torch.zeros(LARGE)
        gone = torch.zeros(LARGE)
        del gone
        self.host.look()
        self.assertEqual(sum(size for _, size, _ in self.host.storages.values()), kept.untyped_storage().nbytes())

    def test_a_part_keeps_the_whole(self):
        part = torch.zeros(LARGE)[5:9]
        self.host.look()
        self.assertEqual(sum(size for _, size, _ in self.host.storages.values()), part.untyped_storage().nbytes())

    def test_small_tensors_are_as_ever(self):
        values = torch.arange(8.0)
        self.assertEqual(values.half().tolist(), list(range(8)))
        self.assertEqual(values.clone().mul_(2).tolist(), list(range(0, 16, 2)))
        self.assertEqual(torch.zeros(2, 3).tolist(), [[0, 0, 0], [0, 0, 0]])
        self.assertEqual(torch.zeros_like(values).copy_(values).add_(1).tolist(), list(range(1, 9)))

    def test_whole_numbers_are_as_ever(self):
        numbers = torch.ones(LARGE, dtype=torch.int64)
        self.assertEqual(int(numbers.clone().add_(1).sum()), 2 * LARGE)
        self.assertEqual(int(torch.zeros(LARGE, dtype=torch.int32).add_(3).sum()), 3 * LARGE)

    def test_gradients_of_casts_are_as_ever(self):
        weight = torch.ones(LARGE, requires_grad=True)
        weight.double().sum().backward()
        self.assertEqual(float(weight.grad.sum()), LARGE)


if __name__ == "__main__":
    unittest.main()
