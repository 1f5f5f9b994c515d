# Out of memory, caught, and tried again with half of the batch, until it fits a card of 15 GB.
#
# dryrun: --cluster t4-16gb-x4
# out_of_memory: 1
import gc

import torch

batch = 1 << 16
while True:
    try:
        net = torch.nn.Linear(4096, 4096, device="cuda")
        rows = torch.zeros(batch, 32, 4096, device="cuda")
        net(rows).sum().backward()
        break
    except torch.OutOfMemoryError as fault:
        assert "14.74 GiB" in str(fault), fault
        print("out of memory with", batch)
        rows = net = None
    gc.collect()
    torch.cuda.empty_cache()
    batch //= 2
print("fits with", batch)
