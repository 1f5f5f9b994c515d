# Transformer Engine's linear layers in float8, by each of its recipes that a card of this generation has.
#
# needs: transformer_engine
# arguments: DelayedScaling; Float8CurrentScaling; Float8BlockScaling
# says: trained in float8
import sys

import torch
import transformer_engine.pytorch as te
from transformer_engine.common import recipe

WIDTH = 1024
layers = torch.nn.Sequential(*(te.Linear(WIDTH, WIDTH, params_dtype=torch.bfloat16) for _ in range(2))).cuda()
optimizer = torch.optim.AdamW(layers.parameters())
for _ in range(2):
    x = torch.randn(2048, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with te.fp8_autocast(enabled=True, fp8_recipe=getattr(recipe, sys.argv[1])()):
        y = layers(x)
    kinds = {tensor.dtype for tensor in y.grad_fn.saved_tensors if tensor is not None}
    y.sum().backward()
    assert all(each.grad is not None for each in layers.parameters())
    optimizer.step()
    optimizer.zero_grad()
print("trained in float8" if torch.uint8 in kinds else f"kept {kinds}", file=sys.stderr)
