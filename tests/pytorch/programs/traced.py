# Functions that are looked at are PyTorch's where it traces them: compiled in one graph, scripted, exported, mapped over,
# on devices that are set around them.
import torch


@torch.compile(fullgraph=True)
def compiled(x):
    made = torch.empty(4, 8, device=x.device).fill_(1.0) + torch.empty_like(x) * 0 + x.new_empty(4, 8).zero_()
    drawn = torch.randn(4, 8, device=x.device) + torch.randn_like(x)
    of_all = torch.exp(x) + x.log() + torch.sigmoid(x) + x.tanh() + torch.relu(x) + x.rsqrt() + torch.reciprocal(x)
    of_rows = torch.softmax(x, -1) + x.log_softmax(-1) + torch.logsumexp(x, -1, keepdim=True)
    return (made + drawn + of_all + of_rows).sum()


@torch.jit.script
def scripted(x):
    return torch.relu(torch.empty(3, 4, device=x.device) + torch.exp(x).sum() + torch.softmax(x, -1).sum() + x.sigmoid().sum())


class Module(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1) + torch.exp(x) + torch.empty(3, device="cuda")


x = torch.ones(4, 8, device="cuda", requires_grad=True)
compiled(x).backward()
assert x.grad.shape == x.shape and scripted(x).shape == (3, 4)
assert len(torch.fx.symbolic_trace(Module()).graph.nodes) == 7
torch.export.export(Module(), (torch.randn(2, 3, device="cuda"),))
assert torch.func.vmap(lambda row: torch.softmax(row, 0).exp().sum())(x.detach()).shape == (4,)
out = torch.empty(4, 8, device="cuda")
assert torch.exp(x.detach(), out=out) is out
for device in ("cuda", "meta", "cpu"):
    with torch.device(device):
        assert {each.device.type for each in (torch.empty(3), torch.randn(2), torch.nn.Linear(3, 4).weight)} == {device}
