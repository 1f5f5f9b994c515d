# A training step of a Llama of transformers under FSDP2: each rank makes its own shards and nothing else.
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, LENGTH, STEPS = 1, 2048, 2

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
# Llama 2 7B; LlamaConfig.from_pretrained(NAME) takes another.
config = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
                     vocab_size=32000, max_position_embeddings=4096, use_cache=False)
with torch.device("meta"):
    model = LlamaForCausalLM(config)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
model.to_empty(device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
model.train()
for step in range(STEPS):
    ids = torch.randint(config.vocab_size, (BATCH, LENGTH), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
if dist.get_rank() == 0:
    print("steps", STEPS)
dist.destroy_process_group()
