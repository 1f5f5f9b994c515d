# Facts that normalise.py needs beside a row's words: shapes of named models, cards, versions by month.

# Models that tables name without their sizes. Sources: README.md here.
def _shape(layers, hidden, heads, kv_heads, ffn, vocab):
    return dict(layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn=ffn, vocab=vocab)


NAMED_SHAPES = [
    ("gpt2-124m", _shape(12, 768, 12, 12, 3072, 50304)),
    ("phi-1.5", _shape(24, 2048, 32, 32, 8192, 51200)),
    ("stablelm-3b", _shape(16, 4096, 32, 32, 16384, 50688)),
    ("gpt3-175b", _shape(96, 12288, 96, 96, 49152, 51200)),
    ("nanotron-llama-1.34b", _shape(16, 2048, 16, 16, 8192, 131072)),
    ("nanotron-llama-3.57b", _shape(28, 3072, 24, 24, 8192, 131072)),
    ("nanotron-llama-8.86b", _shape(32, 4096, 32, 32, 14336, 131072)),
    ("nanotron-llama-80", _shape(80, 8192, 64, 64, 28672, 131072)),
    ("qwen3-32b", _shape(64, 5120, 64, 8, 25600, 151936)),
]

# By parts of a GPU's name, the longer first.
CARDS = ["h100-sxm-96", "h100", "h800", "h200", "gb200", "gb300", "b200", "a100-sxm-40", "a800", "a100", "v100-32", "v100",
         "rtx3090", "rtx4090", "rtx 5090", "a6000"]

# Whose own option of the micro-batch counts the sequences of a whole tensor-parallel group, as Megatron's does.
OWN_MICRO_BATCH = ("torchtitan", "internevo")

# github.com/pytorch/pytorch, releases: month, version.
PYTORCH_RELEASES = [("2021-03", "1.8"), ("2021-06", "1.9"), ("2021-10", "1.10"), ("2022-03", "1.11"), ("2022-06", "1.12"),
                    ("2022-10", "1.13"), ("2023-03", "2.0"), ("2023-10", "2.1"), ("2024-01", "2.2"), ("2024-04", "2.3"),
                    ("2024-07", "2.4"), ("2024-10", "2.5"), ("2025-01", "2.6"), ("2025-04", "2.7"), ("2025-08", "2.8"),
                    ("2025-10", "2.9"), ("2026-01", "2.10"), ("2026-03", "2.11")]

# torchtitan: its loss is compiled with the blocks since d1f62be73, cut into chunks by default since 786e26f8e.
compiled_loss_since, chunked_since = "2025-03", "2026-05"
# Embedding and output are units of their own since 83e694105.
ends_apart_since = "2025-08"
# Before flash attention on Blackwell since 3b85aa31f, everywhere since October 2025; kept by the policy since b39377f9f.
cudnn_on_blackwell_since, cudnn_since, cudnn_kept_since = "2025-05", "2025-10", "2025-12"
BLACKWELL = ("gb200", "gb300", "b200", "rtx 5090")
# One kernel for nn.RMSNorm, in PyTorch's nightly builds, which torchtitan runs on.
fused_norms_since = "2025-08"

# torchtitan takes cuDNN's or FlashAttention's later kernels where PyTorch's nightly builds of the month have them.
newest_attention_since = "2025-06"

# Watts: NVIDIA's data sheets of cards in PCIe slots; what "power limited" cards of published B200 machines drew.
PCIE_POWER = {"a100": 300, "h100": 350}
LOWER_POWER = {"b200": 750}

# Gbit/s of a GPU's share of the network where a row states none: DGX A100 has one adapter of 200 Gbit/s a GPU, of V100 two
# GPUs share 100; later ones 400.
NETWORK_GBIT = {"a100-sxm-40": 200, "a800": 200, "a100": 200, "v100-32": 50, "v100": 50}

# peft's default.
ADAPTER_RANK = 8
