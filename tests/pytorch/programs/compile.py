# torch.compile of a small net: forward, backward, an optimizer's step.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
compiled = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters())
for step in range(3):
    loss = compiled(torch.randn(64, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
