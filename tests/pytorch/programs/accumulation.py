# Gradient accumulation over four micro-batches: the second gradient is added in place, so it takes as much as one.
#
# Four weights of 4 MiB: with gradients, two moments and the set of temporaries of AdamW 5 x 16 MiB, and two workspaces of 32 MiB.
#
# peak: 150994944
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
for step in range(2):
    for micro in range(4):
        (model(torch.zeros(256, 1024, device="cuda")).mean() / 4).backward()
    optimizer.step()
    optimizer.zero_grad()
print("allocated", torch.cuda.max_memory_allocated())
