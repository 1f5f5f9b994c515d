# What a root gathers one by one from ranks that do not run is an error where the program reads it, naming what it is; with
# all of them it is what they sent.
#
# dryrun: --world-size 4 --rank 0
# exit: 1
# says: what gather brings from other ranks
# steps: 1
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
sent = torch.tensor([5 + dist.get_rank()], device="cuda")
got = [torch.zeros_like(sent) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
dist.gather(sent, got, dst=0)
weight = torch.randn(4, 4, device="cuda", requires_grad=True)
weight.sum().backward()
torch.optim.SGD([weight]).step()
print([int(each) for each in got or ()])
