# ZeroRedundancyOptimizer over DDP, rank 0 of 2: optimizer state of half of the parameters.
#
# dryrun: --world-size 2
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = DistributedDataParallel(nn.Sequential(*[nn.Linear(2000, 2000) for _ in range(20)]).cuda())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
for step in range(2):
    nn.functional.mse_loss(model(torch.randn(20, 2000).cuda()), torch.randn(20, 2000).cuda()).backward()
    optimizer.step()
    optimizer.zero_grad()
state = sum(t.numel() * t.element_size() for s in optimizer.optim.state.values() for t in s.values() if t.is_cuda)
assert 2 * 4 * 2000 * 2001 * 9 < state < 2 * 4 * 2000 * 2001 * 11, state
print("state", state)
