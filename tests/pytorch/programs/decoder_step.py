# A decoder of 3.4 billion parameters as courses write it: einsum for every product, attention written out, AdamW.
#
# What the published recording `transformer_3.4b_step_fp32` is of: batch 4, sequence 128, fp32, one step after five.
import math

import torch
from torch import nn

WIDTH, INNER, LAYERS, HEADS, WORDS, BATCH, LENGTH = 2560, 10240, 32, 32, 10000, 4, 128


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
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * scale
        return self.weight * x


class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        angles = torch.outer(torch.arange(LENGTH), 10000 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("table", torch.stack((torch.cos(angles), torch.sin(angles))).cuda(), persistent=False)

    def forward(self, x):
        a, b = x.reshape(*x.shape[:-1], -1, 2).movedim(-1, 0)
        cos, sin = self.table[:, : x.shape[-2]].unbind(0)
        first = cos * a - sin * b
        second = sin * a + cos * b
        return torch.concat((first.unsqueeze(-1), second.unsqueeze(-1)), dim=-1).flatten(-2)


def softmax(x):
    moved = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(moved)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def attention(q, k, v, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


class Attention(nn.Module):
    def __init__(self, rotary):
        super().__init__()
        self.q, self.k, self.v, self.o = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.rotary = rotary

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
        q = self.rotary(q)
        k = self.rotary(k)
        places = torch.arange(x.shape[-2], device=x.device)
        mask = places.view(-1, 1) >= places.view(1, -1)
        y = attention(q, k, v, mask)
        y = y.transpose(1, 2).flatten(-2)
        return self.o(y)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(WIDTH, INNER), Linear(INNER, WIDTH), Linear(WIDTH, INNER)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))


def silu(x):
    return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self, rotary):
        super().__init__()
        self.attention, self.feed_forward, self.norm1, self.norm2 = Attention(rotary), FeedForward(), RMSNorm(), RMSNorm()

    def forward(self, x):
        mixed = self.attention(self.norm1(x))
        between = x + mixed
        moved = self.feed_forward(self.norm2(between))
        return between + moved


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        rotary = Rotary(WIDTH // HEADS)
        self.embedding = Embedding()
        self.blocks = nn.ModuleList(Block(rotary) for _ in range(LAYERS))
        self.norm = RMSNorm()
        self.head = Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


def step(model, optimizer, ids, wanted):
    optimizer.zero_grad(set_to_none=True)
    logits = model(ids)
    loss = nn.functional.cross_entropy(logits.float().view(-1, WORDS), wanted.view(-1))
    loss.backward()
    optimizer.step()


def main():
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
    wanted = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
    for _ in range(6):
        step(model, optimizer, ids, wanted)


if __name__ == "__main__":
    main()
