# Tokens that choose experts by a model's logits: sizes are those of the routing that is assumed.
#
# dryrun: --routing balanced
import torch

tokens, experts, each, width = 64, 8, 2, 16
x = torch.randn(tokens, width, device="cuda", requires_grad=True)
weight = torch.randn(experts, width, device="cuda", requires_grad=True)
probabilities, chosen = torch.topk((x @ weight.t()).softmax(-1), each, dim=-1)
chosen_mask = torch.zeros_like(x @ weight.t()).int().scatter(1, chosen, 1).bool()
rows = torch.arange(tokens, device="cuda").unsqueeze(1)
put = torch.zeros_like(x @ weight.t())
put.index_put_((rows, chosen), torch.ones_like(probabilities, dtype=put.dtype), accumulate=False)
assert put.bool().sum(dim=0).tolist() == [tokens * each // experts] * experts
counts = chosen_mask.sum(dim=0).tolist()
assert counts == [tokens * each // experts] * experts, counts
hits = torch.nn.functional.one_hot(chosen, num_classes=experts).permute(2, 1, 0)
out = torch.zeros_like(x)
for expert in range(experts):
    rank, token = torch.where(hits[expert])
    assert token.shape[0] == counts[expert], token.shape
    out.index_add_(0, token, x[token] * probabilities[token, rank, None])
picked = x[chosen_mask[:, 3]]
assert picked.shape == (counts[3], width), picked.shape
scores = probabilities.new_ones(tokens, experts).masked_select(chosen_mask)
assert scores.shape == (tokens * each,), scores.shape
(out.sum() + picked.sum()).backward()
assert x.grad.shape == x.shape
