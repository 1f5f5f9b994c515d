# Tokens stay what they were when their embedding has been trained: a batch that is used again counts its images again.
#
# steps: 2
import torch
from torch import nn

IMAGE, IMAGES = 4000, 32
tokens = torch.randint(0, IMAGE, (2, 100))
tokens[:, 5:5 + IMAGES // 2] = IMAGE
tokens = tokens.cuda()
embedding, bag = nn.Embedding(4096, 64).cuda(), nn.EmbeddingBag(4096, 64).cuda()
optimizer = torch.optim.SGD([*embedding.parameters(), *bag.parameters()], lr=0.1)
for _ in range(2):
    loss = embedding(tokens).square().mean() + bag(tokens).square().mean()
    loss.backward()
    optimizer.step()
    assert int((tokens == IMAGE).sum()) == IMAGES
