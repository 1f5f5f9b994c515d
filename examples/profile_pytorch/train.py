# A small training loop; with an argument it writes PyTorch's own memory snapshot there. On the CPU where there is no GPU.
import sys

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cuda" and len(sys.argv) > 1:
    torch.cuda.memory._record_memory_history()
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10):
    x = torch.randn(256, 1024, device=device)
    if device == "cuda":
        torch.cuda.nvtx.range_push("step")
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.nvtx.range_pop()
print("loss", loss.item(), "on", device)
if device == "cuda" and len(sys.argv) > 1:
    torch.cuda.memory._dump_snapshot(sys.argv[1])
