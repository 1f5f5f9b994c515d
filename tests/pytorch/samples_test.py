#!/usr/bin/env python3
# Does each kind of model of transformers train on the samples that the recipes make for it? It really does, on the CPU.
"""Needs torch and transformers: part of `make test-pytorch`. A model is as small as can be, of a configuration as a hub has
it; asked is a loss that is a number, and a gradient for a parameter."""
import os
import sys

import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiler", "dryrun", "python"))
from model_samples import Samples, blocks_of, class_of, task_of  # noqa: E402

transformers.logging.set_verbosity_error()
TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64,
        "vocab_size": 99, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SEEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
        "patch_size": 8}
BOTH = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2, "decoder_start_token_id": 1, "max_position_embeddings": 64}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99, "decoder_start_token_id": 0}
SOUND = {**{key: value for key, value in TEXT.items() if "position" not in key}, "conv_dim": [32, 32], "conv_stride": [5, 2],
         "conv_kernel": [10, 3], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 4}
# model_type, architectures[0], entries, the class that trains, blocks, peft's task
CASES = [
    ("llama", "LlamaForCausalLM", TEXT, "LlamaForCausalLM", 2, "CAUSAL_LM"),
    ("llama", None, TEXT, "LlamaForCausalLM", 2, "CAUSAL_LM"),
    ("llama", "LlamaForSequenceClassification", {**TEXT, "num_labels": 1}, "LlamaForSequenceClassification", 2, "SEQ_CLS"),
    ("mixtral", "MixtralForCausalLM", {**TEXT, "num_local_experts": 4}, "MixtralForCausalLM", 2, "CAUSAL_LM"),
    ("gpt2", "GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64},
     "GPT2LMHeadModel", 2, "CAUSAL_LM"),
    ("bert", "BertForMaskedLM", TEXT, "BertForMaskedLM", 2, None),
    ("bert", "BertModel", TEXT, "BertForMaskedLM", 2, None),
    ("bert", "BertForPreTraining", TEXT, "BertForPreTraining", 2, None),
    ("bert", "BertForSequenceClassification", TEXT, "BertForSequenceClassification", 2, "SEQ_CLS"),
    ("bert", "BertForTokenClassification", TEXT, "BertForTokenClassification", 2, "TOKEN_CLS"),
    ("bert", "BertForQuestionAnswering", TEXT, "BertForQuestionAnswering", 2, "QUESTION_ANS"),
    ("bert", "BertForMultipleChoice", TEXT, "BertForMultipleChoice", 2, None),
    ("bert", "BertForSequenceClassification", {**TEXT, "problem_type": "multi_label_classification"},
     "BertForSequenceClassification", 2, "SEQ_CLS"),
    ("electra", "ElectraForPreTraining", {**TEXT, "embedding_size": 32}, "ElectraForPreTraining", 2, None),
    ("t5", "T5ForConditionalGeneration", T5, "T5ForConditionalGeneration", 4, "SEQ_2_SEQ_LM"),
    ("bart", "BartModel", BOTH, "BartForConditionalGeneration", 4, "SEQ_2_SEQ_LM"),
    ("whisper", "WhisperForConditionalGeneration",
     {**BOTH, "num_mel_bins": 8, "max_source_positions": 32, "max_target_positions": 24, "num_hidden_layers": 2},
     "WhisperForConditionalGeneration", 4, None),
    ("wav2vec2", "Wav2Vec2ForCTC", SOUND, "Wav2Vec2ForCTC", 2, None),
    ("hubert", "HubertForSequenceClassification", SOUND, "HubertForSequenceClassification", 2, None),
    ("vit", "ViTForImageClassification", SEEN, "ViTForImageClassification", 2, None),
    ("vit_mae", "ViTMAEForPreTraining",
     {**SEEN, "decoder_hidden_size": 32, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 4},
     "ViTMAEForPreTraining", 4, None),
    ("videomae", "VideoMAEForVideoClassification", {**SEEN, "num_frames": 4}, "VideoMAEForVideoClassification", 2, None),
    ("resnet", "ResNetForImageClassification", {"hidden_sizes": [8, 16], "depths": [1, 1], "embedding_size": 8},
     "ResNetForImageClassification", None, None),
    ("segformer", "SegformerForSemanticSegmentation",
     {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 16, 32], "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 16},
     "SegformerForSemanticSegmentation", None, None),
    ("clip", "CLIPModel", {"text_config": TEXT, "vision_config": SEEN, "projection_dim": 16}, "CLIPModel", None, None),
    ("llava", "LlavaForConditionalGeneration",
     {"text_config": {"model_type": "llama", **TEXT}, "vision_config": {"model_type": "clip_vision_model", **SEEN},
      "image_token_index": 98}, "LlavaForConditionalGeneration", None, "CAUSAL_LM"),
]


def faults_of(kind, architecture, entries, trained, blocks, task):
    config = transformers.AutoConfig.for_model(kind, **entries)
    config.architectures = None if architecture is None else [architecture]
    found = class_of(config)
    faults = [] if found.__name__ == trained else [f"trains {found.__name__}"]
    model = found._from_config(config).train()
    if blocks is not None and len(blocks_of(model)) != blocks:
        faults.append(f"{len(blocks_of(model))} blocks")
    if task_of(found) != task:
        faults.append(f"peft's task is {task_of(found)}")
    samples = Samples(config, found, 16, said=True)
    loss = model(**samples.batch(2, "cpu"), **samples.flags()).loss
    if loss is None or not torch.isfinite(loss):
        return [*faults, f"the loss is {loss}"]
    loss.backward()
    return faults if any(one.grad is not None for one in model.parameters()) else [*faults, "nothing has a gradient"]


def main():
    bad = 0
    for kind, architecture, *more in CASES:
        try:
            faults = faults_of(kind, architecture, *more)
        except Exception as fault:  # of the library, most likely: it is told as the row's
            faults = [f"{type(fault).__name__}: {str(fault)[:200]}"]
        bad += bool(faults)
        print(f"{kind:<10} {architecture or '-':<34} {'; '.join(faults) or 'trains'}", flush=True)
    print(f"{len(CASES)} models, {bad} that do not train as they should")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
