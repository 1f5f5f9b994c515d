# What transformers' classes, trained by PyTorch, make of the models that parity_test trains: losses of ten steps of AdamW,
# gradients of the first, weights behind the last.
# pip install torch==2.11.0 transformers==5.23.0 safetensors numpy; python3 tests/parity/make_vectors.py [MODEL...]
#
# Start and data are drawn here and there by the same rule and never stored: Philox4x32-10 as executor/kernels/random_key.h
# keys it. The start goes through a safetensors file, as in the test.
#
# All is computed in fp64, so that what is left between here and there is our own rounding, with one exception: the angles
# of rotary positions are fp32, as transformers computes them whatever the model's type, and as shardscope does.
import json
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests" / "data" / "parity"
MODELS = {
    "gpt2-nano": ROOT / "examples" / "models" / "gpt2-nano.json",
    "llama-nano": ROOT / "tests" / "data" / "models" / "llama-nano.json",
}
# Sampled elements of each tensor: gradients, and weights behind the last step.
MANY = {"gpt2-nano", "llama-nano", "qwen3", "gemma", "gpt_neox"}
SEED, STEPS, BATCH, SEQUENCE = 7, 10, 2, 24
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
STREAM_PARAMETER, STREAM_TOKENS = 0, 1


def philox(seed, stream, index, count):
    """Elements 0 to count - 1 under the key."""
    n = (count + 3) // 4
    mask = numpy.uint64(0xFFFFFFFF)
    c = [numpy.arange(n, dtype=numpy.uint64), numpy.full(n, index & 0xFFFFFFFF, numpy.uint64),
         numpy.full(n, index >> 32, numpy.uint64), numpy.full(n, stream, numpy.uint64)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        shift = numpy.uint64(32)
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(k0), p1 & mask, (p0 >> shift) ^ c[3] ^ numpy.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, axis=1).reshape(-1)[:count]


def start(number, name, shape):
    """Uniform around 0, or around 1 for the weight of a norm: exact in fp32. Nothing is 0 or 1 where it would hide."""
    count = int(numpy.prod(shape))
    words = philox(SEED, STREAM_PARAMETER, number, count)
    values = ((words >> numpy.uint64(8)).astype(numpy.int64) - (1 << 23)).astype(numpy.float64) / 2**23
    if len(shape) > 1:
        values /= 8
    elif name.endswith(".weight"):
        values = 1 + values / 4
    else:
        values /= 4
    return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


def tokens(vocabulary):
    """The file of the test: a walk with some rule to learn."""
    walk, at = [], 1
    noise = philox(SEED, STREAM_TOKENS, 1 << 32, 400)
    for i in range(400):
        at = (5 * at + 3 + int(noise[i] >> numpy.uint64(30))) % vocabulary
        walk.append(at)
    return walk


def batches(vocabulary):
    walk = tokens(vocabulary)
    starts = len(walk) - SEQUENCE
    for step in range(STEPS):
        words = philox(SEED, STREAM_TOKENS, step, BATCH)
        begins = [int((int(w) * starts) >> 32) for w in words]
        yield torch.tensor([walk[b:b + SEQUENCE + 1] for b in begins])


class Double:
    """Within, what asks for fp32 gets fp64."""
    names = ("float32", "float")

    def __enter__(self):
        self.kept = {name: getattr(torch, name) for name in self.names}
        self.method = torch.Tensor.float
        for name in self.names:
            setattr(torch, name, torch.float64)
        torch.Tensor.float = torch.Tensor.double
        return self

    def __exit__(self, *_):
        for name, value in self.kept.items():
            setattr(torch, name, value)
        torch.Tensor.float = self.method


def angles_in_fp32(model, double):
    """Sines and cosines are made outside of `double`."""
    for module in model.modules():
        if not type(module).__name__.endswith("RotaryEmbedding"):
            continue
        def forward(x, *arguments, made=module.forward, **named):
            double.__exit__()
            try:
                cos, sin = made(x.to(torch.float32), *arguments, **named)
            finally:
                double.__enter__()
            return cos.to(torch.float64), sin.to(torch.float64)
        module.forward = forward


def sampled(tensor, most, where=None):
    """Elements 0, s, 2 s, ... in order of memory, s being odd: no column or head is left out for long. None where not."""
    flat = tensor.detach().reshape(-1)
    step = max(1, flat.numel() // most) | 1
    values = [float(f"{v:.9g}") for v in flat[::step].tolist()]
    return values if where is None else [v if w else None for v, w in zip(values, where.reshape(-1)[::step].tolist())]


def steady(gradient):
    """Adam divides by the gradient's own size: where it is nearly nothing beside the others, rounding decides where the
    element goes."""
    size = gradient.abs()
    return (size == 0) | (size > 1e-3 * size.max())


def make(name, path):
    config = json.loads(path.read_text())
    config = transformers.AutoConfig.for_model(**config)
    config._attn_implementation = "eager"
    for key in ("attention_dropout", "hidden_dropout", "dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"):
        if hasattr(config, key):
            setattr(config, key, 0.0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    names = [n for n, _ in model.named_parameters()]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        save_file({n: start(i, n, p.shape) for i, (n, p) in enumerate(model.named_parameters())}, file)
        missing, unexpected = model.load_state_dict(load_file(file), strict=False)
    # A head that shares the embedding's weight, and constants.
    tied = [n for n in missing if n not in names]
    assert not unexpected and len(tied) == len(missing), (missing, unexpected)
    assert not any(getattr(m, "padding_idx", None) is not None for m in model.modules()), "rows without gradients"
    model = model.train()
    double = Double()
    rotary_buffers = {n: b.clone() for n, b in model.named_buffers()}
    model = model.to(torch.float64)
    for n, b in rotary_buffers.items():  # frequencies stay what fp32 made of them
        owner = model.get_submodule(n.rpartition(".")[0])
        setattr(owner, n.rpartition(".")[2], b)
    angles_in_fp32(model, double)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], foreach=False, **ADAMW)
    begun = {n: p.detach().clone() for n, p in model.named_parameters()}
    losses, gradients = [], None
    weighed = {n: torch.ones(p.shape, dtype=torch.bool) for n, p in model.named_parameters()}
    with double:
        for batch in batches(config.vocab_size):
            logits = model(input_ids=batch[:, :-1], use_cache=False).logits
            assert logits.dtype == torch.float64
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            if gradients is None:
                gradients = {n: p.grad.detach().clone() for n, p in model.named_parameters()}
            of_all = max(float(p.grad.abs().max()) for p in model.parameters())
            for n, p in model.named_parameters():
                weighed[n] &= steady(p.grad) & (float(p.grad.abs().max()) > 1e-6 * of_all)
            optimizer.step()
            losses.append(float(loss.detach()))
    most = (200, 50) if name in MANY else (40, 10)
    tensors = []
    for n, p in model.named_parameters():
        g = gradients[n]
        tensors.append({"name": n, "shape": list(p.shape), "largest": float(g.abs().max()), "norm": float(g.norm()),
                        "moved": float((p.detach() - begun[n]).abs().max()),
                        "gradient": sampled(g, most[0]), "weights": sampled(p, most[1], weighed[n])})
    lines = [json.dumps(t, separators=(",", ":")) for t in tensors]
    head = {"model": name, "config": str(path.relative_to(ROOT)), "torch": torch.__version__.partition("+")[0],
            "transformers": transformers.__version__, "vocabulary": config.vocab_size, "losses": losses}
    text = json.dumps(head)[:-1] + ', "tensors": [\n' + ",\n".join(lines) + "\n]}\n"
    (OUT / f"{name}.vectors.json").write_text(text)
    print(name, "loss", losses[0], "to", losses[-1], len(text), "bytes")


for config_file in sorted(OUT.glob("*.config.json")):
    MODELS[config_file.name.removesuffix(".config.json")] = config_file
for model_name in sys.argv[1:] or MODELS:
    make(model_name, MODELS[model_name])
