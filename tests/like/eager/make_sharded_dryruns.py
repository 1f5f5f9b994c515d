#!/usr/bin/env python3
"""Peaks of random training programs under FSDP on a stand-in GPU, for tests/data/eager/sharded_dryruns.tsv.

    shardscope dryrun --cluster h100-80gb-x8 --world-size 8 -- python3 make_sharded_dryruns.py --runs 60 --seed 1 \
      --framework fsdp2 --out sharded_dryruns.tsv

As make_dryruns.py, whose columns it has behind these: the framework, ranks, the ZeRO stage that stands for its
sharding (3: parameters are resharded after forward; 2: they stay), what rests: fp32 (masters) or the precision itself.
Rank 0 of every program is run.
"""
import argparse, csv, json, random

import torch
import torch.distributed as dist

import make_dryruns


FAMILIES = ["mistral", "qwen2", "qwen3"]


def fsdp2(run, model, blocks):
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    policy = {}
    if run["masters"] == "fp32" and run["precision"] != "fp32":
        policy = {"mp_policy": MixedPrecisionPolicy(param_dtype=run["dtype"], reduce_dtype=torch.float32)}
    if "mesh" in run:
        policy["mesh"] = run["mesh"]
    if run.get("offload"):
        policy["offload_policy"] = CPUOffloadPolicy(pin_memory=run["offload"] == "pinned")
    for block in blocks:
        fully_shard(block, reshard_after_forward=run["stage"] == 3, **policy)
    if run.get("units") == "ends":
        shard_ends(model, run["stage"] == 3, policy)
    fully_shard(model, **policy)
    return model


def shard_ends(model, reshard, policy):
    """Units as accelerate 1.15 makes them (utils/fsdp_utils.py, fsdp2_prepare_model)."""
    from torch.distributed.fsdp import fully_shard

    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    norms = [m for m in getattr(model, model.base_model_prefix).children() if "Norm" in type(m).__name__]
    tied = embedding.weight is head.weight
    if not tied:
        fully_shard(embedding, reshard_after_forward=reshard, **policy)
    fully_shard([*norms[-1:], *([embedding] if tied else []), head], reshard_after_forward=False, **policy)


def fsdp1(run, model, blocks):
    import functools
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = None
    if run["masters"] == "fp32" and run["precision"] != "fp32":
        policy = MixedPrecision(param_dtype=run["dtype"], reduce_dtype=torch.float32)
    of_stage = {3: ShardingStrategy.FULL_SHARD, 2: ShardingStrategy.SHARD_GRAD_OP}
    if "mesh" in run:
        of_stage = {3: ShardingStrategy.HYBRID_SHARD, 2: ShardingStrategy._HYBRID_SHARD_ZERO2}
    return FullyShardedDataParallel(
        model, device_id=0, mixed_precision=policy, use_orig_params=bool(run["use_orig_params"]),
        sharding_strategy=of_stage[run["stage"]], device_mesh=run.get("mesh"),
        cpu_offload=CPUOffload(offload_params=bool(run.get("offload"))),
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(blocks[0])}))


def train(run):
    c = run["config"]
    run["dtype"] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[run["precision"]]
    run["use_orig_params"] = run["framework"] == "fsdp1"
    torch.backends.cuda.enable_cudnn_sdp(False)  # flash, whatever the build of PyTorch prefers
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=run["ranks"])
    model = make_dryruns.hugging_face(c, torch.float32 if run["masters"] == "fp32" else run["dtype"],
                                      run.get("attention", "sdpa"))
    blocks = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList))
    if run["recompute"] == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model = {"fsdp1": fsdp1, "fsdp2": fsdp2}[run["framework"]](run, model, blocks).train()
    tokens = torch.randint(0, c["vocab_size"], (run["batch"], run["sequence"]), device="cuda")
    how = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[run["optimizer"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)

    def step():
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()

    peaks = [torch.cuda.max_memory_allocated()]
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    return peaks + [torch.cuda.max_memory_reserved()]


def draw(r, framework, recompute, families):
    run = {"code": "cs336"}
    while run["code"] == "cs336":
        one = make_dryruns.draw_family(r, r.choice(families or FAMILIES))
        run = one if families else r.choice([make_dryruns.draw(r, recompute), one])
    run["recompute"] = recompute
    run |= {"framework": framework, "ranks": r.choice([2, 2, 3, 4, 8, 16]), "stage": r.choice([3, 3, 2])}
    if run["precision"] == "fp16":
        run["precision"] = "bf16"
    run["masters"] = "fp32" if run["precision"] == "fp32" else r.choice(["fp32", "fp32", "none"])
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--framework", choices=["fsdp1", "fsdp2"], default="fsdp2")
    parser.add_argument("--recompute", choices=["none", "block"], default="none")
    parser.add_argument("--families", nargs="*", default=[], help="model_type of programs to draw alone")
    parser.add_argument("--units", choices=["blocks", "ends"], default="blocks")
    parser.add_argument("--out", default="sharded_dryruns.tsv")
    args = parser.parse_args()
    import transformers.models.gpt2.modeling_gpt2, transformers.models.llama.modeling_llama  # before the fork
    import importlib
    for family in {*FAMILIES, *args.families}:
        package = family.removesuffix("_text")
        importlib.import_module(f"transformers.models.{package}.modeling_{package}")

    draws = random.Random(args.seed)
    keys = ["framework", "ranks", "stage", "masters", "code", "config", "batch", "sequence", "precision", "optimizer",
            "recompute"]
    with open(args.out, "w", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        rows.writerow([*keys[:-1], "creation", "first", "second", "third", "reserved", keys[-1]])
        for _ in range(args.runs):
            run = draw(draws, args.framework, args.recompute, args.families) | {"units": args.units}
            answer = make_dryruns.answer_of(train, run)
            if answer is None:
                continue
            values = [json.dumps(run[k]) if k == "config" else run[k] for k in keys]
            rows.writerow([*values[:-1], *answer, values[-1]])
            out.flush()


if __name__ == "__main__":
    main()
