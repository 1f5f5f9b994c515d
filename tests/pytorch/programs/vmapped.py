# Functions of small tensors under vmap, as masks of attention are made: they have no memory of their own there, and what
# was known before is known behind it.
#
# peak: 2560
import torch

rows = torch.arange(8, device="cuda")
kept = torch.tensor([3], device="cuda")


def mask(row, column):
    return (row >= column) & (torch.zeros_like(row) == 0) & column.new_ones((), dtype=torch.bool)


made = torch.vmap(torch.vmap(mask, in_dims=(None, 0)), in_dims=(0, None))(rows, rows)
assert made.shape == (8, 8) and made.dtype == torch.bool
assert kept.item() == 3 and rows.sum().item() == 28
