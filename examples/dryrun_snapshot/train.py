# A small decoder that trains, and keeps more than it needs: `--fixed` keeps the loss as a number.
import sys

import torch
from torch import nn

WIDTH, LAYERS, WORDS, LENGTH, BATCH, STEPS = 512, 6, 8000, 256, 8, 6
FIXED = "--fixed" in sys.argv


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        return self.head(self.layers(self.words(ids), mask=mask, is_causal=True))


model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
losses, predictions = [], []
for step in range(STEPS):
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).cuda()
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, WORDS), ids[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    # What is kept for the end of the run: probabilities of all words, or the word that was chosen.
    predictions.append(logits.detach().argmax(-1).cpu() if FIXED else logits.detach().softmax(-1))
    losses.append(loss.item() if FIXED else loss)
print("mean loss", sum(float(each) for each in losses) / STEPS)
