# Calls backward of the engine itself, as pipelines do whose output is let go before its gradient comes.
# dryrun: --cluster h100-80gb-x8
# steps: 3
# phases: creation first_step steady_step
import torch
from torch.autograd import Variable

model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    output = model(torch.randn(64, 512, device="cuda"))
    gradient = torch.ones_like(output)
    output.data = torch.empty(1, device="cuda")
    Variable._execution_engine.run_backward(tensors=(output,), grad_tensors=(gradient,), keep_graph=False,
                                            create_graph=False, inputs=(), allow_unreachable=True, accumulate_grad=True)
    optimizer.step()
    optimizer.zero_grad()
