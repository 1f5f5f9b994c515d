# A small decoder from its first allocation on, with an optimizer of its own whose updates are out of place.
#
# What the published recording `transformer_small_from_start` is of: batch 10, sequence 100, fp32, three steps.
import torch
from torch import nn

WIDTH, INNER, LAYERS, HEADS, WORDS, BATCH, LENGTH, LONGEST = 512, 1344, 4, 16, 10000, 10, 100, 256


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, device="cuda"))

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WORDS, WIDTH, device="cuda"))

    def forward(self, ids):
        return self.weight[ids]


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH, device="cuda"))

    def forward(self, x):
        size = torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5)
        return x / size * self.weight


class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        angles = torch.outer(torch.arange(LONGEST), 10000 ** (-torch.arange(0, width, 2) / width))
        self.cos, self.sin = torch.cos(angles), torch.sin(angles)

    def forward(self, x):
        cos = self.cos[: x.shape[-2]].to(x.device)
        sin = self.sin[: x.shape[-2]].to(x.device)
        first = x[..., 0::2] * cos - x[..., 1::2] * sin
        second = x[..., 0::2] * sin + x[..., 1::2] * cos
        return torch.cat((first.unsqueeze(-1), second.unsqueeze(-1)), dim=-1).flatten(-2)


def softmax(x):
    most = torch.max(x, dim=-1, keepdim=True)[0]
    return torch.exp(x - most) / torch.sum(torch.exp(x - most), dim=-1, keepdim=True)


def attention(q, k, v, mask):
    mask = mask.to(q.device)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
    scaled = scores / torch.sqrt(torch.tensor(q.shape[-1]).to(q.device))
    scaled.masked_fill_(~mask.bool(), float("-inf"))
    weights = softmax(scaled)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.rotary = Rotary(WIDTH // HEADS)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
        q = self.rotary(q)
        k = self.rotary(k)
        mask = torch.tril(torch.ones(x.shape[-2], x.shape[-2]))
        y = attention(q, k, v, mask)
        y = y.transpose(1, 2).flatten(-2)
        return self.o(y)


def silu(x):
    return x * torch.sigmoid(x)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3, self.w2 = Linear(WIDTH, INNER), Linear(WIDTH, INNER), Linear(INNER, WIDTH)

    def forward(self, x):
        gate = self.w1(x)
        gate = silu(gate)
        other = self.w3(x)
        both = gate * other
        return self.w2(both)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(), RMSNorm()
        self.attention = Attention()
        self.feed_forward = FeedForward()

    def forward(self, x):
        mixed = self.attention(self.norm1(x))
        x = x + mixed
        moved = self.feed_forward(self.norm2(x))
        return x + moved


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Embedding()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.head = Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


class Adam(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})
        self.first, self.second = [], []
        for p in self.param_groups[0]["params"]:
            self.first.append(torch.zeros_like(p))
            self.second.append(torch.zeros_like(p))

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.param_groups[0]["params"]):
            g = p.grad
            m = self.first[i]
            self.first[i] = 0.9 * m + 0.1 * g
            v = self.second[i]
            self.second[i] = 0.99 * v + 0.01 * g**2
            p.data = p.data - 1e-3 * (self.first[i] / (torch.sqrt(self.second[i]) + 1e-8))
            p.data = p.data - 1e-5 * p.data


def cross_entropy(logits, wanted):
    most = torch.max(logits, dim=-1, keepdim=True)[0]
    chances = logits - most - torch.log(torch.sum(torch.exp(logits - most), dim=-1, keepdim=True))
    one_hot = torch.zeros_like(logits)
    one_hot.scatter_(1, wanted.unsqueeze(1), 1)
    return -torch.sum(one_hot * chances) / logits.shape[0]


def main():
    model = Model()
    optimizer = Adam(model.parameters())
    ids = torch.randint(0, WORDS, (BATCH, LENGTH)).to("cuda")
    wanted = torch.randint(0, WORDS, (BATCH,)).to("cuda")
    for _ in range(3):
        optimizer.zero_grad()
        logits = model(ids)
        last = logits[:, -1, :]
        loss = cross_entropy(last, wanted)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
