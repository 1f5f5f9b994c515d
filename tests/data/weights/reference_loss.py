# The loss of the checkpoints beside it on tokens (5 i + 3) % 16, i = 0 to 8, in fp64, layer by layer as
# modeling_gpt2.py and modeling_llama.py of transformers compute it. Prints what train_weights_test.cpp expects.
# pip install numpy==2.4.6; python3 reference_loss.py
import json
import struct
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TOKENS = np.array([(5 * i + 3) % 16 for i in range(9)])


def load(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        data = raw[8 + length:][slice(*t["data_offsets"])]
        if t["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[t["dtype"]])
        tensors[name] = values.astype(np.float64).reshape(t["shape"])
    return tensors


def layer_norm(x, w, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def rms_norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def attend(q, k, v):
    """One head: [tokens, head_dim] each."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def loss(logits):
    top = logits.max(-1, keepdims=True)
    log_sum = np.log(np.exp(logits - top).sum(-1)) + top[:, 0]
    return (log_sum - logits[np.arange(8), TOKENS[1:]]).mean()


def gpt2(t):
    x = t["wte.weight"][TOKENS[:8]] + t["wpe.weight"][:8]
    h = lambda name: t["h.0." + name]
    n = layer_norm(x, h("ln_1.weight"), h("ln_1.bias"))
    q, k, v = np.split(n @ h("attn.c_attn.weight") + h("attn.c_attn.bias"), 3, axis=-1)
    a = np.concatenate([attend(q[:, s], k[:, s], v[:, s]) for s in (slice(0, 4), slice(4, 8))], axis=-1)
    x = x + a @ h("attn.c_proj.weight") + h("attn.c_proj.bias")
    n = layer_norm(x, h("ln_2.weight"), h("ln_2.bias"))
    m = n @ h("mlp.c_fc.weight") + h("mlp.c_fc.bias")
    m = 0.5 * m * (1 + np.tanh(np.sqrt(2 / np.pi) * (m + 0.044715 * m**3)))
    x = x + m @ h("mlp.c_proj.weight") + h("mlp.c_proj.bias")
    return loss(layer_norm(x, t["ln_f.weight"], t["ln_f.bias"]) @ t["wte.weight"].T)


def rotated(x):
    angle = np.outer(np.arange(8), 10000.0 ** (-np.arange(0, 4, 2) / 4))
    cos, sin = np.cos(np.tile(angle, 2)), np.sin(np.tile(angle, 2))
    return x * cos + np.concatenate([-x[:, 2:], x[:, :2]], axis=-1) * sin


def llama(t, head):
    x = t["model.embed_tokens.weight"][TOKENS[:8]]
    h = lambda name: t["model.layers.0." + name + ".weight"]
    n = rms_norm(x, h("input_layernorm"))
    q, k, v = (n @ h("self_attn." + p + "_proj").T for p in "qkv")
    k = rotated(k)
    a = np.concatenate([attend(rotated(q[:, s]), k, v) for s in (slice(0, 4), slice(4, 8))], axis=-1)
    x = x + a @ h("self_attn.o_proj").T
    n = rms_norm(x, h("post_attention_layernorm"))
    gate = n @ h("mlp.gate_proj").T
    x = x + (gate / (1 + np.exp(-gate)) * (n @ h("mlp.up_proj").T)) @ h("mlp.down_proj").T
    return loss(rms_norm(x, t["model.norm.weight"]) @ t[head].T)


print("gpt2_base", repr(float(gpt2(load(HERE / "gpt2_base.safetensors")))))
parts = {}
for part in sorted((HERE / "llama_bf16").glob("*.safetensors")):
    parts.update(load(part))
print("llama_bf16", repr(float(llama(parts, "lm_head.weight"))))
print("llama_tied_f16", repr(float(llama(load(HERE / "llama_tied_f16.safetensors"), "model.embed_tokens.weight"))))
