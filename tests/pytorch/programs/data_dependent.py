# Shapes and branches that depend on values, which are zeros here: nonzero, masks, experts, a loop until converged.
import torch

x = torch.randn(1000, 64, device="cuda")
print("nonzero", x.nonzero().shape, "selected", x[x > 0].shape, x.masked_select(x > 0).shape)
print("where", torch.where(x > 0)[0].shape, "unique", torch.unique(x).shape)
gate = torch.randn(64, 8, device="cuda")
experts = torch.nn.ModuleList(torch.nn.Linear(64, 64, device="cuda") for _ in range(8))
chosen = (x @ gate).topk(2).indices
out = torch.zeros_like(x)
for number, expert in enumerate(experts):
    rows, _ = torch.where(chosen == number)
    if rows.numel() > 0:
        out.index_add_(0, rows, expert(x[rows]))
loss, steps = torch.ones((), device="cuda"), 0
while loss.item() > 0.5 and steps < 100:
    loss, steps = loss * 0.9, steps + 1
print("steps", steps, "finite", bool(torch.isfinite(loss)), loss.tolist(), f"{loss:.3f}")
if torch.isnan(loss):
    raise SystemExit("the loss is not a number")
