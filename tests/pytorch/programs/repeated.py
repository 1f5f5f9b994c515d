# Numbers of repeats that are a column of a table: the table stays what it was.
import torch

sizes = torch.tensor([[1, 8, 8]]).cuda()
repeated = torch.repeat_interleave(sizes[:, 1] * sizes[:, 2], sizes[:, 0])
assert repeated.tolist() == [64], repeated.tolist()
assert sizes.tolist() == [[1, 8, 8]], sizes.tolist()
