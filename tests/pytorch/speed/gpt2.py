# GPT-2 of transformers, four steps, on the device that is its argument: cuda under dryrun, or meta.
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

DEVICE = sys.argv[1]
with torch.device("meta"):
    model = GPT2LMHeadModel(GPT2Config())
model.to_empty(device=DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    ids = torch.zeros(4, 512, dtype=torch.long, device=DEVICE)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
