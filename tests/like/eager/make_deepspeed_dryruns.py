#!/usr/bin/env python3
"""Peaks of random training programs under DeepSpeed on a stand-in GPU, for tests/data/eager/deepspeed_dryruns.tsv.

    shardscope dryrun --cluster h100-80gb-x8 --world-size 2 -- python3 make_deepspeed_dryruns.py --runs 40 --seed 1 \
      --out deepspeed_dryruns.tsv

Needs deepspeed beside what make_dryruns.py needs. Columns: ranks, the ZeRO stage, reduce_bucket_size, then those of
make_dryruns.py. Rank 0 of every program is run; with --stage3 programs of stage 3 are drawn, of whose ranks the first or
the last is run, and columns rank and zero (further keys of zero_optimization) lie behind the stage; so do they with
--offload, whose programs have DeepSpeedCPUAdam and two more columns: bytes of the host's memory at the end, pageable ones
of tensors larger than a KiB, and pinned ones in whole KiB, as PyTorch's allocator gives them. DeepSpeedCPUAdam is
compiled at its first use, which needs ninja and g++.
"""
import argparse, csv, gc, json, os, random

import torch
import torch.distributed as dist

import make_dryruns


class OtherRanks(dist.Store):
    """What ranks that do not run would have said: NCCL's id, whatever the key."""

    def set(self, key, value): pass
    def get(self, key): return bytes(128)
    def wait(self, *_): pass
    def add(self, key, amount): return amount
    def check(self, keys): return False
    def set_timeout(self, timeout): pass


def train(run):
    c, ranks, rank = run["config"], run["ranks"], run.get("rank", 0)
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.backends.cuda.enable_cudnn_sdp(False)  # flash, whatever the build of PyTorch prefers
    store = OtherRanks() if rank else dist.HashStore()  # which C++ does not keep
    dist.init_process_group("nccl", store=store, rank=rank, world_size=ranks)
    import deepspeed
    if run["stage"] == 3:  # what rank 0 would send is zeros
        import deepspeed.runtime.zero.partitioned_param_coordinator as coordinator
        coordinator.assert_ints_same_as_other_ranks = lambda *_: None

    settings = {"train_micro_batch_size_per_gpu": run["batch"], "zero_allow_untested_optimizer": True,
                "zero_optimization": {"stage": run["stage"], "reduce_bucket_size": run["reduce_bucket_size"],
                                      **run.get("zero", {})}}
    if run["precision"] == "bf16":
        settings["bf16"] = {"enabled": True}
    dtype = torch.float32
    if settings["zero_optimization"].pop("zero_init", False):  # as transformers' Trainer: within deepspeed.zero.Init
        from transformers.integrations import HfDeepSpeedConfig
        kept = HfDeepSpeedConfig(settings)
        dtype = torch.bfloat16 if run["precision"] == "bf16" else dtype
    model = make_dryruns.hugging_face(c, dtype)
    if run["recompute"] == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    offloads = "offload_optimizer" in run.get("zero", {})
    if offloads:
        optimizer = deepspeed.ops.adam.DeepSpeedCPUAdam(model.parameters(), lr=1e-3)
    else:
        how = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[run["optimizer"]]
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings, dist_init_required=False)
    engine.train()
    tokens = torch.randint(0, c["vocab_size"], (run["batch"], run["sequence"]), device="cuda")

    def step():
        loss = engine(input_ids=tokens, labels=tokens).loss
        engine.backward(loss)
        engine.step()

    peaks = [torch.cuda.max_memory_allocated()]
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    return peaks + [torch.cuda.max_memory_reserved()] + (host_bytes() if offloads else [])


def host_bytes():
    """Of tensors on the host: what libraries keep there and copies of scalars are small, and not told."""
    gc.collect()
    storages = {}
    for t in gc.get_objects():
        if issubclass(type(t), torch.Tensor) and t.device.type == "cpu":
            for tensor in (t, t.grad if t.is_leaf else None):
                if tensor is not None and tensor.untyped_storage().nbytes() > 1024:
                    storages[tensor.untyped_storage().data_ptr()] = (tensor.untyped_storage().nbytes(), tensor.is_pinned())
    return [sum(n for n, pinned in storages.values() if not pinned),
            torch.cuda.host_memory_stats()["allocated_bytes.current"] // 1024 * 1024]


def draw(r):
    run = {"code": "cs336"}
    while run["code"] == "cs336" or run["precision"] == "fp16":
        run = make_dryruns.draw(r, "none")
    run["recompute"] = r.choice(["none", "none", "block"])
    run |= {"ranks": r.choice([1, 2, 2, 4, 8]), "stage": r.choice([1, 2]),
            "reduce_bucket_size": r.choice([r.randint(1000, 100000), r.randint(100000, 5000000), 500000000])}
    return run


def draw_stage3(r, within_init=False):
    run = draw(r) | {"stage": 3}
    elements = lambda *choices: r.choice([r.randint(*choices), r.randint(choices[0], choices[1] // 30)])
    run["rank"] = r.choice([0, 0, run["ranks"] - 1])
    zero = {"stage3_prefetch_bucket_size": elements(0, 3000000), "stage3_param_persistence_threshold": elements(0, 300000),
            "stage3_max_live_parameters": elements(0, 10000000), "stage3_max_reuse_distance": elements(0, 3000000),
            "sub_group_size": elements(10000, 3000000)}
    run["zero"] = {k: v for k, v in zero.items() if r.random() < 0.6} | ({"zero_init": True} if within_init else {})
    return run


def draw_offload(r, parameters, stages):
    stage = r.choice(stages)
    run = draw_stage3(r) if stage == 3 else draw(r) | {"stage": stage, "zero": {}}
    run["ranks"] = r.choice([2, 3, 4, 8])
    run["rank"] = r.choice([0, run["ranks"] - 1])
    run["optimizer"] = "cpu"
    for what in ["offload_optimizer", *(["offload_param"] if parameters else [])]:
        run["zero"][what] = {"device": "cpu", "pin_memory": r.random() < 0.5}
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stage3", action="store_true")
    parser.add_argument("--offload", choices=["optimizer", "parameters"], help="both, for the latter")
    parser.add_argument("--stages", type=int, nargs="+", default=[3], help="with --offload")
    parser.add_argument("--zero-init", action="store_true", help="with --stage3: models are made within deepspeed.zero.Init")
    parser.add_argument("--out", default="deepspeed_dryruns.tsv")
    args = parser.parse_args()
    import transformers.models.gpt2.modeling_gpt2, transformers.models.llama.modeling_llama  # before the fork

    draws = random.Random(args.seed)
    placed = ["rank", "zero"] if args.stage3 or args.offload else []
    keys = ["ranks", "stage", *placed, "reduce_bucket_size", "recompute", "config", "batch", "sequence", "precision", "optimizer"]
    with open(args.out, "w", newline="") as out:
        rows = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        rows.writerow([*keys, "creation", "first", "second", "third", "reserved", *(["host", "pinned"] if args.offload else [])])
        for _ in range(args.runs):
            if args.offload:
                run = draw_offload(draws, args.offload == "parameters", args.stages)
            else:
                run = draw_stage3(draws, args.zero_init) if args.stage3 else draw(draws)
            answer = make_dryruns.answer_of(train, run)
            if answer is None:
                continue
            rows.writerow([json.dumps(run[k]) if k in ("config", "zero") else run[k] for k in keys] + answer)
            out.flush()


if __name__ == "__main__":
    main()
