# A CUDA graph: captured, replayed, and a callable made of one; its private pool.
import torch

net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
static = torch.randn(32, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        net(static).sum().backward()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
net.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = net(static).sum()
    loss.backward()
for _ in range(3):
    static.copy_(torch.randn(32, 256, device="cuda"))
    graph.replay()
made = torch.cuda.make_graphed_callables(torch.nn.Linear(64, 64).cuda(), (torch.randn(8, 64, device="cuda", requires_grad=True),))
made(torch.randn(8, 64, device="cuda", requires_grad=True)).sum().backward()
print("replayed", loss.item())
