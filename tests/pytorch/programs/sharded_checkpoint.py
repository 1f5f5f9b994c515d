# A sharded checkpoint (torch.distributed.checkpoint) of a model that is tensor-parallel and sharded: the last of 8 ranks
# writes its own pieces and reads them again.
#
# dryrun: --world-size 8 --rank 7
# says: read again: 28 entries
# steps: 2
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
mesh = dist.init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("shards", "tensor"))
model = nn.Sequential(nn.Linear(256, 1024, bias=False), nn.ReLU(), nn.Linear(1024, 256, bias=False), nn.LayerNorm(256)).cuda()
parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
fully_shard(model, mesh=mesh["shards"])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
with tempfile.TemporaryDirectory() as folder:
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.save(state, checkpoint_id=folder)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    print(f"read again: {len(dcp.FileSystemReader(folder).read_metadata().state_dict_metadata)} entries")
dist.destroy_process_group()
