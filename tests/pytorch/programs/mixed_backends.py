# Groups of the host's and the card's tensors: a card's take NCCL's way, with its streams, whatever is named first.
#
# dryrun: --world-size 4 --rank 1 --assume-zeros
# arguments: nccl;cuda:nccl,cpu:gloo;cpu:gloo,cuda:nccl
import os
import sys

import torch
import torch.distributed as dist

backend = sys.argv[1]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend)
shard = torch.ones(1 << 20, device="cuda")
for _ in range(3):
    whole = torch.empty(3 << 20, device="cuda")[:2 << 20]
    dist.all_reduce(whole, async_op=True)
    del whole  # NCCL's stream still uses it
    torch.cuda.synchronize()
out = torch.empty(1 << 18, device="cuda")
dist.reduce_scatter_tensor(out, shard)
if backend != "nccl":
    host = torch.ones(4)
    dist.all_reduce(host)
    assert host.tolist() == [4.0] * 4, host
dist.barrier()
assert torch.cuda.max_memory_allocated() >= 28 << 20, "NCCL's stream keeps what it uses"
dist.all_gather_into_tensor(torch.empty(4 << 18, device="cuda"), out)
