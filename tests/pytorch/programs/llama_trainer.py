# A small Llama under transformers' Trainer: bf16, gradient checkpointing and accumulation, evaluation.
#
# needs: transformers accelerate
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Words(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.arange(128) % 1000
        return {"input_ids": ids, "labels": ids}


config = LlamaConfig(hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=4, vocab_size=1000, max_position_embeddings=128)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=3, bf16=True,
        gradient_checkpointing=True, logging_steps=1, save_strategy="no", report_to="none", per_device_eval_batch_size=4)
    trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=Words(), eval_dataset=Words())
    trainer.train()
    trainer.evaluate()
