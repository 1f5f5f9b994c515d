#!/usr/bin/env python3
"""Makes the checkpoints of this folder with the libraries that write them; README.md says with which.

    make.py FOLDER [dcp|flat|mesh|plain|zero1|zero2|zero3|zero1-bf16|zero3-bf16|continued] ...
"""
import os
import shutil
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import save_file

WORLD = 2
STEPS = 3


def model():
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(5)
    config = GPT2Config(n_layer=1, n_embd=6, n_head=2, vocab_size=33, n_positions=8, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0)
    return GPT2LMHeadModel(config)


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randint(0, 33, (2, 8), generator=generator)


def expected(folder, weights, first, second, step):
    """The state as this project names it."""
    tensors = {}
    for name, value in weights.items():
        tensors[name] = value.detach().float().contiguous().clone()
    for name in first:
        tensors[name + ".exp_avg"] = first[name].detach().float().contiguous().clone()
        tensors[name + ".exp_avg_sq"] = second[name].detach().float().contiguous().clone()
        tensors[name + ".step"] = torch.tensor(step, dtype=torch.int32)
    save_file(tensors, folder + ".safetensors")


def sharded(rank, folder, kind):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    whole = model()
    mesh = init_device_mesh("cpu", (WORLD,))
    for block in whole.transformer.h:
        fully_shard(block, mesh=mesh)
    fully_shard(whole, mesh=mesh)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-2)
    for step in range(STEPS):
        ids = batch(step, rank)
        whole(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if kind == "flat":
        options = StateDictOptions(flatten_optimizer_state_dict=True)
        weights, state = get_state_dict(whole, optimizer, options=options)
        dcp.save({**weights, "optimizer": state, "train_state": {"step": STEPS}}, checkpoint_id=folder)
    else:
        weights, state = get_state_dict(whole, optimizer)
        dcp.save({"model": weights, "optim": state, "step": STEPS}, checkpoint_id=folder)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights, state = get_state_dict(whole, optimizer, options=options)
    if rank == 0:
        expected(folder, {k: v for k, v in weights.items() if k != "lm_head.weight"},
                 {k: v["exp_avg"] for k, v in state["state"].items()},
                 {k: v["exp_avg_sq"] for k, v in state["state"].items()}, STEPS)


def cut_twice(rank, folder):
    """Matrices that a mesh of two by two cuts in both dimensions, as FSDP beside tensor parallelism does."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    weights = {n: p.detach() for n, p in model().named_parameters()}
    generator = torch.Generator().manual_seed(7)
    first, second = ({n: torch.rand(p.shape, generator=generator) for n, p in weights.items()} for _ in range(2))

    def cut(tensor):
        across = Shard(1) if tensor.dim() > 1 else Replicate()
        return distribute_tensor(tensor, mesh, [Shard(0), across])

    state = {n: {"step": torch.tensor(float(STEPS)), "exp_avg": cut(first[n]), "exp_avg_sq": cut(second[n])}
             for n in weights}
    dcp.save({"model": {n: cut(p) for n, p in weights.items()}, "optim": {"state": state, "param_groups": []},
              "step": STEPS}, checkpoint_id=folder)
    if rank == 0:
        expected(folder, weights, first, second, STEPS)


def zero(rank, folder, kind):
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state
    stage = int(kind[4])
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage},
              "zero_allow_untested_optimizer": True, "bf16": {"enabled": kind.endswith("bf16")}}
    if stage == 3:
        config["zero_optimization"].update({"stage3_param_persistence_threshold": 0, "sub_group_size": 400})
    whole = model()
    decay = [p for p in whole.parameters() if p.dim() > 1]
    rest = [p for p in whole.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=1e-2)
    engine, _, _, _ = deepspeed.initialize(model=whole, optimizer=optimizer, config=config,
                                           dist_init_required=False)
    for step in range(STEPS):
        ids = batch(step, rank)
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(folder)
    if stage == 3:
        named = list(engine.module.named_parameters())
        weights = {n: safe_get_full_fp32_param(p) for n, p in named}
        first = {n: safe_get_full_optimizer_state(p, "exp_avg") for n, p in named}
        second = {n: safe_get_full_optimizer_state(p, "exp_avg_sq") for n, p in named}
        if rank == 0:
            expected(folder, weights, first, second, STEPS)
    elif rank == 0:
        universal(folder)


def universal(folder):
    """What DeepSpeed's own converter makes of it."""
    import subprocess
    import tempfile
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state",
                        "--input_folder", f"{folder}/global_step{STEPS}", "--output_folder", out,
                        "--num_extract_workers", "1", "--num_merge_workers", "1"], check=True)
        shapes = {n: p.shape for n, p in model().named_parameters()}
        names = [n for n in os.listdir(out + "/zero") if n in shapes]
        parts = [{n: torch.load(f"{out}/zero/{n}/{what}.pt", weights_only=False)["param"].reshape(shapes[n])
                  for n in names} for what in ("fp32", "exp_avg", "exp_avg_sq")]
        expected(folder, *parts, STEPS)


def ranks_of(kind):
    return 4 if kind == "mesh" else WORLD


def work(rank, folder, kind):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks_of(kind)), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="29511", DS_ACCELERATOR="cpu")
    if kind.startswith("zero"):
        import deepspeed
        deepspeed.init_distributed("gloo")
        zero(rank, folder, kind)
    else:
        dist.init_process_group("gloo")
        cut_twice(rank, folder) if kind == "mesh" else sharded(rank, folder, kind)
    dist.destroy_process_group()


def plain(folder):
    whole = model()
    os.makedirs(folder)
    torch.save(whole.state_dict(), folder + "/pytorch_model.bin")
    expected(folder, {k: v for k, v in whole.state_dict().items() if k != "lm_head.weight"}, {}, {}, 0)


def continued(folder):
    """A run that is saved behind three steps and goes on to the eighth: its tokens, its checkpoint, its losses."""
    import json
    import numpy
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict
    whole = model()
    torch.manual_seed(1)
    steps, rows, length = 8, 4, 8
    tokens = torch.randint(0, 33, (steps * rows * length + 1,))
    matrices = [p for p in whole.parameters() if p.dim() > 1]
    vectors = [p for p in whole.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=1e-2,
                                  betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    losses = []
    for step in range(steps):
        if step == STEPS:
            weights, state = get_state_dict(whole, optimizer)
            dcp.save({"model": weights, "optim": state}, checkpoint_id=folder, no_dist=True)
        first = [(step * rows + row) * length for row in range(rows)]
        ids = torch.stack([tokens[at:at + length + 1] for at in first])
        logits = whole(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 33), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    numpy.array(tokens, dtype=numpy.uint16).tofile(folder + "/tokens.bin")
    model().config.to_json_file(folder + "/config.json")
    with open(folder + "/losses.json", "w") as out:
        json.dump(losses, out)


if __name__ == "__main__":
    kinds = sys.argv[2:] or ["dcp", "flat", "mesh", "plain", "zero1", "zero2", "zero3", "zero1-bf16", "zero3-bf16", "continued"]
    for each in kinds:
        target = os.path.join(sys.argv[1], each)
        shutil.rmtree(target, ignore_errors=True)
        if each in ("plain", "continued"):
            plain(target) if each == "plain" else continued(target)
        else:
            mp.spawn(work, (target, each), nprocs=ranks_of(each))
        for script in ("zero_to_fp32.py", "zero_to_torch.py"):  # DeepSpeed puts copies of its own there
            if os.path.exists(f"{target}/{script}"):
                os.remove(f"{target}/{script}")
