# QLoRA of a small Llama: from_pretrained quantizes with bitsandbytes what nobody has written to. What stays is, for each
# linear layer, half a byte a weight, a byte for 64 weights, four for 256 of those, two tables and an offset.
#
# needs: transformers accelerate peft bitsandbytes
import gc

import torch
import transformers
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training


def rounded(size):
    return -(-size // 512) * 512


def quantized(count):
    blocks = -(-count // 64)
    return sum(map(rounded, (count // 2, blocks, -(-blocks // 256) * 4, 16 * 4, 256 * 4, 4)))


config = transformers.LlamaConfig(hidden_size=256, intermediate_size=704, num_hidden_layers=3, num_attention_heads=8,
                                  num_key_value_heads=4, vocab_size=1000, max_position_embeddings=128,
                                  tie_word_embeddings=False, dtype="bfloat16")
with torch.device("meta"):
    whole = transformers.LlamaForCausalLM(config)
weights = {name: torch.empty(one.shape, dtype=torch.bfloat16) for name, one in whole.named_parameters()}
how = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                      bnb_4bit_compute_dtype=torch.bfloat16)
model = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=weights, quantization_config=how,
                                                      dtype=torch.bfloat16, device_map={"": 0})
gc.collect()
linear = [one.numel() for name, one in whole.named_parameters() if "_proj" in name]
rest = [one.numel() * 2 for name, one in whole.named_parameters() if "_proj" not in name]
frequencies = [buffer.numel() * 4 for buffer in model.buffers()]
table = 1024  # that bitsandbytes keeps for itself
held = sum(map(quantized, linear)) + sum(map(rounded, rest + frequencies)) + table
assert torch.cuda.memory_allocated() == held, (torch.cuda.memory_allocated(), held)

model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=8, target_modules="all-linear"))
optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad])
ids = torch.randint(0, 1000, (2, 128), device="cuda")
for _ in range(2):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
