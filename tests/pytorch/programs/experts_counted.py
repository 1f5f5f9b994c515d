# Many tokens that choose experts, whose numbers a histogram counts, as torchtitan's layers of experts do.
#
# dryrun: --routing balanced
import torch

tokens, experts, each, width, align = 16381, 8, 4, 16, 8
scores = torch.randn(tokens, experts, device="cuda").softmax(-1)
_, chosen = torch.topk(scores, k=each, dim=-1, sorted=False)
counts = torch.histc(chosen.view(-1), bins=experts, min=0, max=experts)
assert sum(counts.tolist()) == tokens * each, counts
assert max(counts.tolist()) - min(counts.tolist()) <= 1, counts
padded = ((torch.clamp_min(counts.view(1, -1).sum(0), align) + align - 1) // align * align).to(torch.int32)
assert all(a <= b < a + align for a, b in zip(counts.tolist(), padded.tolist())), padded
bias = torch.randn(experts, width, device="cuda", requires_grad=True)
of_tokens = bias.repeat_interleave(padded.long(), dim=0)
assert of_tokens.shape == (sum(padded.tolist()), width), of_tokens.shape
# Numbers of bytes that have a zero behind them, too.
assert bias.repeat_interleave(torch.full((experts,), 32, device="cuda"), dim=0).shape == (256, width)
of_tokens.sum().backward()
assert bias.grad.shape == bias.shape
counts = torch.bincount(chosen.view(-1))
assert counts.shape == (experts,) and sum(counts.tolist()) == tokens * each, counts
assert chosen.view(-1).bincount(minlength=2 * experts).shape == (2 * experts,)
