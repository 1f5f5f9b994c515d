# Sampling ends at its length, though nobody knows whether a token that no kernel drew is the last one; one operand of "or" and
# of "and" can decide alone.
#
# says: 32 tokens
import torch

table = torch.randn(4096, 256, device="cuda", requires_grad=True)
tokens = torch.randint(0, 4096, (4, 1), device="cuda")
unfinished = torch.ones(4, dtype=torch.long, device="cuda")
last = torch.tensor([4095], device="cuda")
done = False
while not done:
    logits = table[tokens[:, -1]] @ table.T
    drawn = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
    tokens = torch.cat([tokens, drawn[:, None]], dim=1)
    ended = torch.isin(tokens[:, -1], last)
    ended = torch.full((4,), tokens.shape[1] >= 32, device="cuda") | ended
    unfinished = unfinished & ~ended
    done = bool(unfinished.max() == 0)
print(tokens.shape[1], "tokens")
