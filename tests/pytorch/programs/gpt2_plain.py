# GPT-2 of transformers, small, in a loop of its own: bf16 autocast, AdamW, a schedule, clipping.
#
# needs: transformers
import torch
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

model = GPT2LMHeadModel(GPT2Config(n_embd=256, n_layer=4, n_head=8, vocab_size=5000, n_positions=256)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
schedule = get_linear_schedule_with_warmup(optimizer, 1, 10)
for step in range(3):
    ids = torch.randint(5000, (4, 256), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(step, loss.item())
