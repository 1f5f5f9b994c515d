# Symmetric memory among two ranks, each with a process of its own: every one has the other's buffer mapped.
#
# dryrun: --world-size 2 --rank all
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
own = symmetric.empty(1 << 20, dtype=torch.uint8, device=f"cuda:{rank}")
handle = symmetric.rendezvous(own, dist.group.WORLD)
assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, 2, 1 << 20)
assert len({*handle.buffer_ptrs, 0}) == 3 and handle.buffer_ptrs[rank] == own.data_ptr() and handle.multicast_ptr == 0
kept = torch.zeros(1 << 20, dtype=torch.uint8, device=f"cuda:{rank}")
kept.copy_(handle.get_buffer(1 - rank, (1 << 20,), torch.uint8))
dist.destroy_process_group()
