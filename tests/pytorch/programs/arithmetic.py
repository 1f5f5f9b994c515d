# Tensors whose sum anybody can add up: 1 MiB stays, 3 MiB come and go, 5 MiB stay.
#
# peak: 6291456
import torch

kept = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
short_lived = torch.zeros(3 << 20, dtype=torch.uint8, device="cuda")
del short_lived
more = torch.ones(5 << 20, dtype=torch.uint8, device="cuda")
print("allocated", torch.cuda.max_memory_allocated())
