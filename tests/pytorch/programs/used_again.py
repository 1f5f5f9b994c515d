# Memory that is used again: what kernels write there, of tensors with gaps and by broadcasting too, is nobody's to know,
# so that tokens choose experts as it is assumed, and not by what was there before: known, or sent by other ranks.
#
# dryrun: --cluster h100-80gb-x8 --world-size 2 --rank 1 --routing balanced
import torch

torch.distributed.init_process_group("nccl")

tokens, experts = 2048, 4


@torch.compile
def scaled(x, y):
    return x * y.unsqueeze(1) + 1


def is_balanced(scores):
    chosen = scores.topk(1, dim=1).indices
    return torch.zeros_like(scores).int().scatter(1, chosen, 1).sum(dim=0).tolist() == [tokens // experts] * experts


made = {"a product": lambda x, y: x * y.unsqueeze(1), "of a function": lambda x, y: torch.exp(x),
        "of gaps": lambda x, y: (x.t().contiguous().t() / y.unsqueeze(1)).sigmoid(), "a matrix": lambda x, y: x @ x[:4].t(),
        "compiled": scaled, "probabilities": lambda x, y: torch.softmax(x * y[:, None], dim=1)}
for name, function in made.items():
    for pieces, of_others in ((1, False), (16, False), (16, True)):
        known = [torch.full((tokens // pieces, experts), 3.0, device="cuda") for _ in range(12 * pieces)]
        if of_others:
            for each in known:
                torch.distributed.all_reduce(each)
        least, most = (of(each.data_ptr() for each in known) for of in (min, max))
        del known
        x, y = torch.randn(tokens, experts, device="cuda"), torch.randn(tokens, device="cuda")
        keep = [function(x, y) for _ in range(3)]
        assert any(least <= each.data_ptr() < most for each in keep), name
        assert all(is_balanced(each) for each in keep), (name, pieces, of_others)
        assert float(keep[2].sum()) == 0, (name, pieces, of_others)  # nobody is asked for what is this rank's own
        del x, y, keep
torch.distributed.destroy_process_group()
