# A mask that is drawn on the GPU finds as many as it would, alike where it is computed again for backward, and the host's own
# random numbers are not drawn for it; of a long tensor a known mask chooses what it would. A mask that no kernel computed
# finds nothing, which the answer says (JSON `replaced`).
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)
host = torch.rand(4)
torch.manual_seed(1)
layer = torch.nn.Linear(64, 64, device="cuda")
x = torch.randn(8192, 64, device="cuda", requires_grad=True)
torch.manual_seed(1)
sizes = []


def part(x):
    mask = torch.rand(x.shape[0], device="cuda") < 0.25
    sizes.append(int(mask.sum()))
    chosen = layer(x[mask])
    assert chosen.shape[0] == sizes[-1] and 1800 < sizes[-1] < 2300
    return chosen


for _ in range(2):
    checkpoint(part, x, use_reentrant=False).sum().backward()
assert sizes[0] == sizes[1] and sizes[2] == sizes[3], sizes
assert torch.equal(host, torch.rand(4)), "the host's random numbers are others"
known = torch.zeros(8192, dtype=torch.bool)
known[:100] = True
assert x[known.cuda()].shape[0] == 100 and torch.randperm(100, device="cuda").unique().numel() == 100
torch.ones(1000, device="cuda")
assert torch.where(torch.empty(0, device="cuda") == 1)[0].numel() == 0
assert x[x[:, 0] > 0].shape[0] == 0
