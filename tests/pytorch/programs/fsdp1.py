# FullyShardedDataParallel (the first one), bf16 mixed precision, a wrapped block each, rank 3 of 8, clipping, full state.
#
# dryrun: --world-size 8 --rank 3
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, StateDictType
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = nn.Sequential(*[nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True) for _ in range(4)], nn.Linear(256, 1000))
precision = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
wrap = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.TransformerEncoderLayer})
model = FullyShardedDataParallel(model, auto_wrap_policy=wrap, mixed_precision=precision, use_orig_params=True,
                                 device_id=torch.cuda.current_device(), sync_module_states=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    loss = model(torch.randn(4, 64, 256, device="cuda")).float().square().mean()
    loss.backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(loss)
    print(step, loss.item())
with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
    print(len(model.state_dict()))
dist.barrier()
dist.destroy_process_group()
