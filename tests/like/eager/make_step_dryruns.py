#!/usr/bin/env python3
"""Peaks of random training loops on a stand-in GPU, for tests/data/eager/step_dryruns.tsv: clipping, accumulation, ...

    shardscope dryrun --cluster h100-80gb-x8 --world-size 8 -- python3 make_step_dryruns.py --runs 40 --seed 1 \
      --framework fsdp2 --settings clip accumulate --out step_dryruns.tsv

As make_sharded_dryruns.py and make_deepspeed_dryruns.py, with what a loop has beside: `clip`, gradients are clipped by
their norm (torch.nn.utils.clip_grad_norm_, under fsdp1 the model's own, DeepSpeed's gradient_clipping); `micro_steps`,
losses over their number whose gradients are summed before a step, reduced in every one of them; `shard_group`, ranks
that shard one copy of the model, of which there are several (HSDP). Rank 0 of every
program is run. --events N writes what the N-th program took and gave back instead, for a look at one that differs.
"""
import argparse, csv, json, os, pickle, random, time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import make_dryruns
import make_sharded_dryruns

KEYS = ["framework", "ranks", "shard_group", "stage", "masters", "reduce_bucket_size", "clip", "micro_steps", "config",
        "batch", "sequence", "precision", "optimizer", "recompute"]
ACTIVATIONS = ["gelu", "gelu_pytorch_tanh", "gelu_new", "gelu_accurate", "gelu_fast", "quick_gelu", "silu", "swish", "relu",
               "relu2", "relu6", "leaky_relu", "hardswish", "mish", "sigmoid", "tanh", "linear"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def deepspeed_settings(run):
    settings = {"train_micro_batch_size_per_gpu": run["batch"], "zero_allow_untested_optimizer": True,
                "gradient_accumulation_steps": run["micro_steps"],
                "zero_optimization": {"stage": run["stage"], "reduce_bucket_size": run["reduce_bucket_size"]}}
    if run["clip"]:
        settings["gradient_clipping"] = 1.0
    if run["precision"] == "bf16":
        settings["bf16"] = {"enabled": True}
    return settings


def wrapped(run, model):
    """As the framework has it."""
    if run["framework"] == "pytorch":
        return model.to("cuda")
    if run["framework"] == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model.to("cuda"), device_ids=[0])
    if run["shard_group"] < run["ranks"]:
        run["mesh"] = init_device_mesh("cuda", (run["ranks"] // run["shard_group"], run["shard_group"]),
                                       mesh_dim_names=("replicate", "shard"))
    blocks = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    return getattr(make_sharded_dryruns, run["framework"])(run, model, blocks)


def clip(run, model):
    if run["framework"] == "fsdp1":
        model.clip_grad_norm_(1.0)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def step_of(run, model, optimizer):
    """step() of a loop that accumulates and clips as `run` says."""
    tokens = torch.randint(0, run["config"]["vocab_size"], (run["batch"], run["sequence"]), device="cuda")

    def step():
        optimizer.zero_grad()
        for _ in range(run["micro_steps"]):
            loss = model(input_ids=tokens, labels=tokens).loss
            if run["micro_steps"] > 1:
                loss = loss / run["micro_steps"]
            loss.backward()
            if run["framework"] == "ddp":
                time.sleep(0.25)  # as a GPU's steps are: longer than NCCL's watchdog waits before it lets buckets go
        if run["clip"]:
            clip(run, model)
        optimizer.step()
    return step


def peaks_of(step, events=None):
    """Allocated up to here and in each of three steps, then reserved; events are written to a file of that name."""
    peaks = [torch.cuda.max_memory_allocated()]
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    if events:
        with open(events, "wb") as out:
            pickle.dump(torch.cuda.memory._snapshot(), out)
    return peaks + [torch.cuda.max_memory_reserved()]


def prepare(run):
    """step() of the whole run."""
    c, ranks = run["config"], run["ranks"]
    run["dtype"] = DTYPES[run["precision"]]
    run["use_orig_params"] = run["framework"] == "fsdp1"
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.backends.cuda.enable_cudnn_sdp(False)  # flash, whatever the build of PyTorch prefers
    if run["framework"] != "pytorch":
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=ranks)
    model = make_dryruns.hugging_face(c, torch.float32 if run["masters"] == "fp32" else run["dtype"])
    if run["recompute"] == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    how = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[run["optimizer"]]
    if run["framework"] == "deepspeed":
        import deepspeed
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=deepspeed_settings(run),
                                          dist_init_required=False)
        engine.train()
        tokens = torch.randint(0, c["vocab_size"], (run["batch"], run["sequence"]), device="cuda")

        def step():
            for _ in range(run["micro_steps"]):
                loss = engine(input_ids=tokens, labels=tokens).loss
                engine.backward(loss)
                engine.step()
        return step
    model = wrapped(run, model).train()
    return step_of(run, model, torch.optim.AdamW(model.parameters(), lr=1e-3, **how))


def train(run, events=None):
    if events:
        torch.cuda.memory._record_memory_history(max_entries=1000000)
    return peaks_of(prepare(run), events)


def draw(r, framework, settings):
    run = {"code": "cs336"}
    while run["code"] == "cs336" or (run["precision"] == "fp16" and framework not in ("pytorch", "ddp")):
        run = r.choice([make_dryruns.draw(r, "none"),
                        make_dryruns.draw_family(r, r.choice(make_sharded_dryruns.FAMILIES))])
    sharded = framework in ("fsdp1", "fsdp2")
    run |= {"framework": framework, "reduce_bucket_size": 0, "stage": 0, "masters": "none", "ranks": 1,
            "recompute": r.choice(["none", "none", "block"]),
            "clip": int("clip" in settings and r.random() < 0.7),
            "micro_steps": r.choice([1, 2, 2, 3, 4]) if "accumulate" in settings else 1}
    if "activations" in settings:
        key = "activation_function" if run["config"]["model_type"] == "gpt2" else "hidden_act"
        run["config"][key] = r.choice(ACTIVATIONS)
    if framework != "pytorch":
        run["ranks"] = r.choice([2, 2, 3, 4, 8, 16])
    run["shard_group"] = run["ranks"]
    if "groups" in settings:
        run["shard_group"] = r.choice([2, 2, 3, 4, 8])
        run["ranks"] = run["shard_group"] * r.choice([2, 2, 4])
    if sharded:
        run["stage"] = r.choice([3, 3, 2])
        run["masters"] = "fp32" if run["precision"] == "fp32" else r.choice(["fp32", "fp32", "none"])
    if framework == "deepspeed":
        run |= {"stage": r.choice([1, 2]), "masters": "fp32", "reduce_bucket_size":
                r.choice([r.randint(1000, 100000), r.randint(100000, 5000000), 500000000])}
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--framework", choices=["pytorch", "ddp", "fsdp1", "fsdp2", "deepspeed"], default="fsdp2")
    parser.add_argument("--settings", nargs="*", default=["clip", "accumulate"])
    parser.add_argument("--events", type=int, help="of this program, as a snapshot beside --out")
    parser.add_argument("--out", default="step_dryruns.tsv")
    args = parser.parse_args()
    import importlib
    for family in ["gpt2", "llama", *make_sharded_dryruns.FAMILIES]:  # before the fork
        importlib.import_module(f"transformers.models.{family}.modeling_{family}")

    draws = random.Random(args.seed)
    with open(args.out, "w", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        rows.writerow([*KEYS, "creation", "first", "second", "third", "reserved"])
        for i in range(args.runs):
            run = draw(draws, args.framework, args.settings)
            if args.events is not None and i != args.events:
                continue
            answer = make_dryruns.answer_of(train, run, f"{args.out}.pickle" if args.events is not None else None)
            if answer is None:
                continue
            rows.writerow([json.dumps(run[k]) if k == "config" else run[k] for k in KEYS] + answer)
            out.flush()


if __name__ == "__main__":
    main()
