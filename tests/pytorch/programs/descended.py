# LBFGS that keeps its history: gradients, losses and products that nobody computes do not end it.
#
# says: kept
import sys

import torch

ELEMENTS, HISTORY = 1 << 20, 4
weights = torch.nn.Parameter(torch.randn(ELEMENTS, device="cuda"))
optimizer = torch.optim.LBFGS([weights], max_iter=6, history_size=HISTORY, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (weights * weights).sum()
    loss.backward()
    return loss


for _ in range(2):
    optimizer.step(closure)
state = optimizer.state[weights]
assert state["n_iter"] == 12, state["n_iter"]
assert len(state["old_dirs"]) == len(state["old_stps"]) == HISTORY
assert optimizer.param_groups[0]["tolerance_grad"] == 1e-7
print("kept", file=sys.stderr)
