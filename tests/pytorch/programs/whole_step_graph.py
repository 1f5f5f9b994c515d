# A whole training step as a CUDA graph, its optimizer's step in it: each replay is a step, and has the graph's kernels.
# dryrun: --time --cluster a100-80gb-x8
# steps: 6
# kernels: 50
import torch

net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(net.parameters(), capturable=True)
static = torch.randn(64, 512, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    net(static).square().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(4):
    graph.replay()
