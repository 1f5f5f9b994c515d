# DeepSpeed's ZeRO 1, 2 and 3 with bf16, rank 0 of 4.
#
# dryrun: --world-size 4
# arguments: 1;2;3
# needs: deepspeed
import sys

import deepspeed
import torch
from torch import nn

STAGE = int(sys.argv[1]) if len(sys.argv) > 1 else 3
config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": {"stage": STAGE},
          "gradient_clipping": 1.0}
deepspeed.init_distributed()
with deepspeed.zero.Init(config_dict_or_path=config, enabled=STAGE == 3):
    model = nn.Sequential(*[nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True) for _ in range(4)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
for step in range(3):
    loss = engine(torch.randn(4, 64, 256, device="cuda", dtype=torch.bfloat16)).float().square().mean()
    engine.backward(loss)
    engine.step()
    print(step, loss.item())
