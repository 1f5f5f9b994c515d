# Embeddings, scatters, sorts, sums along an axis, draws: what CUB and Thrust do.
import torch
from torch import nn

words = nn.Embedding(5000, 64, padding_idx=0, device="cuda")
bag = nn.EmbeddingBag(5000, 64, mode="mean", device="cuda")
for count in (100, 5000):
    ids = torch.randint(5000, (2, count), device="cuda")
    (words(ids).sum() + bag(ids).sum() + words.weight[ids].sum()).backward()
x = torch.randn(1000, 300, device="cuda", requires_grad=True)
index = torch.randint(300, (1000, 300), device="cuda")
(x.gather(1, index).sum() + x.cumsum(1).sum() + x.sort(1).values.sum() + x.topk(5).values.sum()).backward()
with torch.no_grad():
    torch.zeros(1000, 300, device="cuda").scatter_add_(1, index, x).index_add_(0, index[:, 0], x)
    x.clone().index_put_((index[:10, 0], index[:10, 1]), x[:10, 0], accumulate=True)
    x.clone().masked_fill_(x > 0, 1.0).index_select(0, index[0, :10])
    for draw in (x.softmax(1).multinomial(3), torch.randperm(100000, device="cuda"), x.argsort(dim=1, stable=True),
                 x.flatten().sort().values, x.median(1).values, x.kthvalue(3, 1).values, x.quantile(0.5), x.cumprod(1),
                 x.logcumsumexp(1), torch.bincount(index.flatten(), minlength=300), torch.histc(x, 10),
                 torch.searchsorted(x[0].sort().values, x[1]), x.flip(0), x.roll(1), torch.unique(index), x.var(0),
                 torch.cdist(x[:10], x[:10]), torch.tril(x), torch.einsum("ij,kj->ik", x, x), x.norm(), x.std()):
        print(tuple(draw.shape))
