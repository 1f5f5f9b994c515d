# torch.jit.script of functions that a dry run computes on the host where numbers are small: they stay PyTorch's own.
#
# says: scripted
import sys

import torch
import torch.nn.functional as F


@torch.jit.script
def chosen(source, k: int):
    return torch.topk(source, k=k, dim=0)[1]


@torch.jit.script
def one_hot_to_float(x, classes: int):
    return F.one_hot(x, num_classes=classes).float()


weights = torch.randn(64, 8, device="cuda")
assert one_hot_to_float(chosen(weights, 2), 64).shape == (2, 8, 64)
assert F.one_hot(torch.tensor([1, 3], device="cuda"), 4).argmax(1).tolist() == [1, 3]
print("scripted", file=sys.stderr)
