# Writes the checkpoints beside it with Hugging Face's own library: pip install safetensors==0.5.3 numpy==2.4.6
# python3 make_weights.py
#
# Element i of tensor number k of a checkpoint, in the order below, is ((7 i + 13 k) % 251 - 125) / 64: exact in 16 bits.
# Names are those that the checkpoints of transformers have: gpt2's as on the hub (of the base model, with its causal mask),
# llama's as save_pretrained() cuts them, and a llama with tied embeddings whose head was saved, too.
import json
import struct
from pathlib import Path

import numpy
from safetensors import serialize_file

HERE = Path(__file__).parent


def encoded(values, dtype):
    if dtype == "BF16":
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return values.astype({"F32": "<f4", "F16": "<f2", "U8": "u1"}[dtype]).tobytes()


def tensors(shapes, dtype, first=0):
    made = {}
    for k, (name, shape) in enumerate(shapes):
        count = int(numpy.prod(shape))
        values = ((7 * numpy.arange(count) + 13 * (first + k)) % 251 - 125) / 64
        made[name] = {"dtype": dtype, "shape": list(shape), "data": encoded(values, dtype)}
    return made


# The library's words for dtypes.
WORDS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "U8": "uint8"}


def save(made, path):
    for tensor in made.values():
        tensor["dtype"] = WORDS[tensor["dtype"]]
    serialize_file(made, path, {"format": "pt"})


def gpt2():
    d, v, n = 8, 16, 8
    shapes = [("wte.weight", (v, d)), ("wpe.weight", (n, d))]
    shapes += [("h.0." + name, shape) for name, shape in [
        ("ln_1.weight", (d,)), ("ln_1.bias", (d,)),
        ("attn.c_attn.weight", (d, 3 * d)), ("attn.c_attn.bias", (3 * d,)),
        ("attn.c_proj.weight", (d, d)), ("attn.c_proj.bias", (d,)),
        ("ln_2.weight", (d,)), ("ln_2.bias", (d,)),
        ("mlp.c_fc.weight", (d, 4 * d)), ("mlp.c_fc.bias", (4 * d,)),
        ("mlp.c_proj.weight", (4 * d, d)), ("mlp.c_proj.bias", (d,))]]
    shapes += [("ln_f.weight", (d,)), ("ln_f.bias", (d,))]
    made = tensors(shapes, "F32")
    made.update(tensors([("h.0.attn.bias", (1, 1, n, n))], "F32"))
    save(made, HERE / "gpt2_base.safetensors")


def llama_shapes():
    d, v, f, kv = 8, 16, 16, 4
    shapes = [("model.embed_tokens.weight", (v, d))]
    shapes += [("model.layers.0." + name, shape) for name, shape in [
        ("self_attn.q_proj.weight", (d, d)), ("self_attn.k_proj.weight", (kv, d)),
        ("self_attn.v_proj.weight", (kv, d)), ("self_attn.o_proj.weight", (d, d)),
        ("mlp.gate_proj.weight", (f, d)), ("mlp.up_proj.weight", (f, d)), ("mlp.down_proj.weight", (d, f)),
        ("input_layernorm.weight", (d,)), ("post_attention_layernorm.weight", (d,))]]
    return shapes + [("model.norm.weight", (d,)), ("lm_head.weight", (v, d))]


def llama():
    folder = HERE / "llama_bf16"
    folder.mkdir(exist_ok=True)
    shapes = llama_shapes()
    where = {}
    for number, (begin, end) in enumerate([(0, 5), (5, len(shapes))], 1):
        name = f"model-0000{number}-of-00002.safetensors"
        part = shapes[begin:end]
        save(tensors(part, "BF16", begin), folder / name)
        where.update({tensor: name for tensor, _ in part})
    total = sum(2 * int(numpy.prod(shape)) for _, shape in shapes)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    save(tensors(shapes, "F16"), HERE / "llama_tied_f16.safetensors")


def check():
    """What the format says of each, read without the library."""
    for path in sorted(HERE.rglob("*.safetensors")):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        print(path.relative_to(HERE), len(raw), len(json.loads(raw[8:8 + length])) - 1)


gpt2()
llama()
check()
