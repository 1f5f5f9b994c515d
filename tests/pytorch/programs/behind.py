# Memory that another stream still uses is not free while the GPU is behind the host; PyTorch counts it as active, no
# longer as allocated.
#
# dryrun: --behind wait
# peak: 8388608
import torch

MEGABYTE = 1 << 20
side = torch.cuda.Stream()
first = torch.empty(4 * MEGABYTE, dtype=torch.uint8, device="cuda")
with torch.cuda.stream(side):
    kept = first + 1
first.record_stream(side)
del first
second = torch.empty(4 * MEGABYTE, dtype=torch.uint8, device="cuda")
del second
torch.cuda.synchronize()
third = torch.empty(4 * MEGABYTE, dtype=torch.uint8, device="cuda")
assert torch.cuda.memory_allocated() == 8 * MEGABYTE, torch.cuda.memory_allocated()
assert torch.cuda.max_memory_allocated() == 8 * MEGABYTE, torch.cuda.max_memory_allocated()
active = torch.cuda.memory_stats()["active_bytes.all.peak"]
assert active == 12 * MEGABYTE, active
