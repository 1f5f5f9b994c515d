# An encoder of 3.4 billion parameters, three steps, on the device that is its argument.
import sys

import torch
from torch import nn

DEVICE = sys.argv[1]
with torch.device(DEVICE):
    layer = nn.TransformerEncoderLayer(4096, 32, 16384, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 16, enable_nested_tensor=False), nn.Linear(4096, 32000))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.zeros(2, 512, 4096, device=DEVICE)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
