#!/usr/bin/env python3
"""Peaks of random training loops under FSDP that offloads to the CPU, for tests/data/eager/offload_dryruns.tsv.

    shardscope dryrun --cluster h100-80gb-x8 --world-size 8 -- python3 make_offload_dryruns.py --runs 20 --seed 1 \
      --framework fsdp2 --out offload_dryruns.tsv

As make_step_dryruns.py, with the rank that is run and where offloaded shards lie: pinned, or pageable (CPUOffloadPolicy
with pin_memory=False; fsdp1 knows no such thing). Behind the peaks of the GPU, what PyTorch's pinned memory of the host
reached (torch.cuda.host_memory_stats), and the bytes of the optimizer's states on the host. CPU tensors of fsdp2's
clipping are summed by a group of `fake`, in place of gloo, whose ranks would have to be there. --events N as there.
"""
import argparse, csv, json, os, random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import make_deepspeed_dryruns
import make_dryruns
import make_sharded_dryruns
import make_step_dryruns

KEYS = ["framework", "ranks", "rank", "shard_group", "stage", "masters", "use_orig_params", "offload", "clip",
        "micro_steps", "config", "batch", "sequence", "precision", "optimizer", "recompute"]
FAMILIES = ["qwen2", "qwen3", "mistral"]


def prepare(run):
    """The optimizer, step(), and the store, which must live."""
    from torch.testing._internal.distributed.fake_pg import FakeStore  # makes the backend known

    c, ranks, rank = run["config"], run["ranks"], run["rank"]
    run["dtype"] = make_step_dryruns.DTYPES[run["precision"]]
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(ranks))
    torch.backends.cuda.enable_cudnn_sdp(False)  # flash, whatever the build of PyTorch prefers
    store = make_deepspeed_dryruns.OtherRanks() if rank else dist.HashStore()  # which C++ does not keep
    dist.init_process_group("cpu:fake,cuda:nccl", store=store, rank=rank, world_size=ranks)
    if run["shard_group"] < ranks:
        run["mesh"] = init_device_mesh("cuda", (ranks // run["shard_group"], run["shard_group"]),
                                       mesh_dim_names=("replicate", "shard"))
    model = make_dryruns.hugging_face(c, torch.float32 if run["masters"] == "fp32" else run["dtype"])
    if run["recompute"] == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    blocks = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    model = getattr(make_sharded_dryruns, run["framework"])(run, model, blocks).train()
    how = {"default": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[run["optimizer"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)
    return optimizer, make_step_dryruns.step_of(run, model, optimizer), store


def bytes_of_states(optimizer):
    tensors = [t for state in optimizer.state.values() for name, t in state.items() if name != "step"]
    local = [t.to_local() if hasattr(t, "to_local") else t for t in tensors]
    return sum(t.numel() * t.element_size() for t in local if t.device.type == "cpu")


def train(run, events=None):
    if events:
        torch.cuda.memory._record_memory_history(max_entries=1000000)
    optimizer, step, _store = prepare(run)
    peaks = make_step_dryruns.peaks_of(step, events)
    return peaks + [torch.cuda.host_memory_stats()["allocated_bytes.peak"], bytes_of_states(optimizer)]


def draw(r, framework):
    run = {"code": "cs336"}
    while run["code"] == "cs336" or run["precision"] == "fp16":
        run = r.choice([make_dryruns.draw(r, "none"), make_dryruns.draw_family(r, r.choice(FAMILIES))])
    ranks = r.choice([2, 3, 4, 5, 8])
    shard_group = ranks // 2 if ranks in (4, 8) and r.random() < 0.3 else ranks
    fsdp2 = framework == "fsdp2"
    return run | {"framework": framework, "ranks": ranks, "rank": r.choice([0, ranks - 1]), "shard_group": shard_group,
                  "stage": r.choice([3, 3, 2]), "recompute": r.choice(["none", "block"]), "clip": r.choice([0, 1]),
                  "masters": "fp32" if run["precision"] == "fp32" else r.choice(["fp32", "fp32", "none"]),
                  "offload": r.choice(["pinned", "pinned", "pageable"]) if fsdp2 else "pinned",
                  "use_orig_params": 0 if fsdp2 else r.choice([1, 1, 0]),
                  "micro_steps": r.choice([1, 1, 2]) if fsdp2 else 1,
                  "optimizer": r.choice(["default", "default", "fused", "for-loop"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--framework", choices=["fsdp1", "fsdp2"], default="fsdp2")
    parser.add_argument("--events", type=int, help="of this program, as a snapshot beside --out")
    parser.add_argument("--out", default="offload_dryruns.tsv")
    args = parser.parse_args()
    import importlib
    for family in ["gpt2", "llama", *FAMILIES]:  # before the fork
        importlib.import_module(f"transformers.models.{family}.modeling_{family}")

    draws = random.Random(args.seed)
    with open(args.out, "w", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        rows.writerow([*KEYS, "creation", "first", "second", "third", "reserved", "pinned", "host_states"])
        for i in range(args.runs):
            run = draw(draws, args.framework)
            if args.events is not None and i != args.events:
                continue
            if args.framework == "fsdp1" and run["rank"] and not run["use_orig_params"]:
                continue  # another shard is padded at creation, beside the one that rank 0 has
            answer = make_dryruns.answer_of(train, run, f"{args.out}.pickle" if args.events is not None else None)
            if answer is None:
                continue
            rows.writerow([json.dumps(run[k]) if k == "config" else run[k] for k in KEYS] + answer)
            out.flush()


if __name__ == "__main__":
    main()
