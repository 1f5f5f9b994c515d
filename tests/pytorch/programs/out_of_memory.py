# Out of memory, not caught: PyTorch's own error, at the allocation that gets none.
#
# dryrun: --cluster l4-24gb-x8
# exit: 1
# out_of_memory: 1
# peak: 22548578304
# says: OutOfMemoryError
import torch

kept = []
while True:
    kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
