# Scaled dot product attention by each of its implementations, forward and backward, and where it is causal or masked.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

for dtype in (torch.bfloat16, torch.float16, torch.float32):
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION):
        q, k, v = (torch.randn(2, 8, 300, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
        mask = torch.ones(300, 300, dtype=torch.bool, device="cuda")
        with sdpa_kernel(backend):
            for more in ({}, {"is_causal": True}, {"dropout_p": 0.1}, {"attn_mask": mask}):
                try:
                    scaled_dot_product_attention(q, k, v, **more).sum().backward()
                    print(dtype, backend, sorted(more), "done")
                except RuntimeError as fault:
                    print(dtype, backend, sorted(more), str(fault).splitlines()[0])
