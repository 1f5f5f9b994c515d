# A kernel in Triton of the program's own, which asks the driver how many threads fit.
#
# needs: triton
# peak: 12582912
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at, mask=at < size) + tl.load(b + at, mask=at < size), mask=at < size)


a, b = torch.ones(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
out = torch.empty_like(a)
add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024, num_warps=4)
