# Segments that grow, as PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True asks for.
#
# peak: 104857600
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

first = torch.zeros(50 << 20, dtype=torch.uint8, device="cuda")
second = torch.zeros(30 << 20, dtype=torch.uint8, device="cuda")
del first
third = torch.zeros(70 << 20, dtype=torch.uint8, device="cuda")
torch.cuda.empty_cache()
