# Two replicas of four shards under fully_shard, on groups that are split off the one bound to a card; rank 5 of 8 alone.
#
# dryrun: --world-size 8 --rank 5
# steps: 3
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group(device_id=device)
mesh = dist.init_device_mesh("cuda", (2, 4), mesh_dim_names=("replicas", "shards"))
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
