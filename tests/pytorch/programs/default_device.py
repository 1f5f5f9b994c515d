# A default device: what is made without another one is made there, with its values; none under "meta" has memory.
#
# peak: 8704
import torch

torch.empty(1, device="cuda")
with torch.device("cuda"):
    numbers = torch.arange(1000)
    assert numbers.is_cuda and numbers.sum().item() == 499500
    assert torch.tensor([3, 4]).is_cuda
    assert not torch.zeros(4, device="cpu").is_cuda
    del numbers
with torch.device("meta"):
    assert torch.arange(4).is_meta and torch.ones(2).is_meta
torch.set_default_device("cuda")
assert torch.full((3,), 7.0).sum().item() == 21
