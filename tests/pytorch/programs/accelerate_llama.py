# A small Llama in accelerate's loop, as rank 1 of 4: DDP, bf16, accumulation, clipping, gathered metrics.
#
# dryrun: --world-size 4 --rank 1
# needs: transformers accelerate
import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
config = LlamaConfig(hidden_size=256, intermediate_size=688, num_hidden_layers=3, num_attention_heads=8, vocab_size=1000)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
words = torch.utils.data.TensorDataset(torch.randint(1000, (64, 64)))
loader = torch.utils.data.DataLoader(words, batch_size=2)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for step, (ids,) in enumerate(loader):
    with accelerator.accumulate(model):
        loss = model(input_ids=ids, labels=ids).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(step, accelerator.gather(loss.detach()).mean().item())
accelerator.wait_for_everyone()
accelerator.end_training()
