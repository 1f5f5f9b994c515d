# fully_shard (FSDP2), bf16 parameters, fp32 reduction, rank 0 of 8, clipping, a sharded checkpoint's state.
#
# dryrun: --world-size 8
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
with torch.device("meta"):
    model = nn.Sequential(*[nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True) for _ in range(4)], nn.Linear(256, 1000))
policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
for layer in model:
    fully_shard(layer, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
model.to_empty(device="cuda")
for parameter in model.parameters():
    nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    loss = model(torch.randn(4, 64, 256, device="cuda")).float().square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
print(sum(each.numel() for each in model.state_dict().values()))
dist.destroy_process_group()
