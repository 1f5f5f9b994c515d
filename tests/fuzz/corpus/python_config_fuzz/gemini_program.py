#!/usr/bin/env python
# Written anew after the tutorial program of Colossal-AI's "ZeRO based on chunk memory management" (v0.1.13).
import torch

from colossalai.nn.optimizer import HybridAdam
from colossalai.nn.parallel import GeminiDDP


def gemini(model: torch.nn.Module, policy: str = "cpu"):
    return GeminiDDP(model, device=get_current_device(), placement_policy=policy, pin_memory=True, search_range_mb=32,
                     hidden_dim=1024, min_chunk_size_mb=16)


def main():
    model = gemini(make())
    optimizer = HybridAdam(model.parameters(), lr=1e-3)
    for step in range(10):
        train(model, optimizer)


if __name__ == '__main__':
    main()
