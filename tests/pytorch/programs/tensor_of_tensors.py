# Numbers on a card in a list make a tensor, and such a list's elements are no sequences.
#
# peak: 4002304
import torch

x = torch.ones(1_000_000, device="cuda")
made = torch.tensor([[torch.norm(x)], [x.sum()]])
assert made.shape == (2, 1), made.shape
small = torch.tensor([3, 4], device="cuda")
assert small[1].item() == 4 and torch.tensor([small[0], small[1]]).tolist() == [3, 4]
assert small[torch.tensor([1, 0], device="cuda")].tolist() == [4, 3]
