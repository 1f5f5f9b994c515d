# What the host reads of tensors with gaps or in another type, of padded ones, and how many different numbers there are.
#
# says: read
import sys

import torch
import torch.nn.functional as F

grid = torch.tensor([[1, 16, 20], [2, 24, 12]], device="cuda")
assert grid[:, 1].tolist() == [16, 24] and grid[:, 1].cpu().tolist() == [16, 24] and grid.t().cpu()[2].tolist() == [20, 12]
assert grid[:, 2].to("cpu", torch.float64).tolist() == [20, 12]
assert torch.tensor([2], device="cuda").expand(3).tolist() == [2, 2, 2]
host = torch.zeros(2, dtype=torch.int32)
assert host.copy_(grid[:, 1]).tolist() == [16, 24]
ends = F.pad(torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0]).cumsum(0, dtype=torch.int32), (1, 0))
assert ends.tolist() == [0, 320, 608, 896]
runs = torch.tensor([0, 0, 4, 4, 4, 9, 9, 7, 0], device="cuda")
different, counts = torch.unique_consecutive(runs, return_counts=True)
assert different.tolist() == [0, 4, 9, 7, 0] and counts.tolist() == [2, 3, 2, 1, 1]
assert torch.unique(runs).tolist() == [0, 4, 7, 9]
rows = torch.tensor([[1, 2], [1, 2], [0, 1]], device="cuda")
assert torch.unique(rows, dim=0, return_inverse=True)[1].tolist() == [1, 1, 0]
print("read", file=sys.stderr)
