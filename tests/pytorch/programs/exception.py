# An exception that nobody catches, from within backward: 4 MiB, and 512 bytes each of a sum, its buffer and semaphores.
#
# exit: 1
# peak: 4195840
# says: ValueError
import torch


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        raise ValueError("no gradient today")


kept = torch.zeros(1 << 20, device="cuda", requires_grad=True)
Fails.apply(kept).sum().backward()
