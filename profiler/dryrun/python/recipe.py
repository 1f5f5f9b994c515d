# A training run of the installed framework on a model that its config.json describes: no weights are read, tokens are
# random, and everything else is what the framework does.
import json
import os
import sys
import tempfile

import torch


def model_of(spec):
    """The class that the library has for the model, in memory that nobody has written to."""
    import transformers
    config = transformers.AutoConfig.from_pretrained(spec["model"])
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}.get(spec.get("weights"))
    if dtype is None and int(transformers.__version__.split(".")[0]) < 5:
        dtype = torch.float32  # what from_pretrained takes where nothing is said; later ones take the config's
    config.use_cache = False
    more = {} if dtype is None else {"dtype": dtype}
    if spec.get("attention"):
        more["attn_implementation"] = spec["attention"]
    kind = transformers.AutoModelForCausalLM
    if spec["place"] == "zero.Init":
        return kind.from_config(config, **more)
    with torch.device("meta"):
        model = kind.from_config(config, **more)
    if spec["place"] != "meta":
        tied = getattr(model, "tie_weights", lambda: None)
        model.to_empty(device=spec["place"])
        tied()
    return model


def tokens(spec, device):
    return torch.randint(0, spec["vocabulary"], (spec["micro_batch"], spec["sequence"]), device=device)


def completed(spec):
    """What was not said, as the model's configuration has it."""
    import transformers
    config = transformers.AutoConfig.from_pretrained(spec["model"])
    config = getattr(config, "text_config", config)
    longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 4096
    return {"sequence": min(4096, longest), "vocabulary": config.vocab_size, **spec}


def ranks():
    return int(os.environ.get("WORLD_SIZE", "1"))


def meet():
    """The group of all ranks and this one's card."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    if "RANK" in os.environ:
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", local))
    elif SPEC["recipe"] != "pytorch":
        torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    return torch.device("cuda", local)


def blocks_of(model):
    """The layers that repeat: the longest list of modules."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len) if lists else []


def set_up(spec, model):
    """What all loops of one's own have: checkpointing and a training mode."""
    model.train()
    if spec.get("recompute"):
        model.gradient_checkpointing_enable()
    return model


def loop(spec, model, device):
    """Steps with AdamW; autocast where weights are fp32 and the precision is another."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    own = next(model.parameters()).dtype
    mixed = kind is not None and own == torch.float32 and spec["recipe"] in ("ddp", "pytorch")
    for _ in range(spec["steps"]):
        batch = tokens(spec, device)
        with torch.autocast("cuda", dtype=kind, enabled=mixed):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def plain(spec):
    device = meet()
    loop(spec, set_up(spec, model_of({**spec, "place": "cuda"})), device)


def ddp(spec):
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "cuda"}))
    loop(spec, torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index]), device)


def fsdp1(spec):
    import functools
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "cpu"}))
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(b) for b in blocks_of(model)})
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    mixed = None if kind is None else MixedPrecision(param_dtype=kind, reduce_dtype=kind, buffer_dtype=kind)
    model = FullyShardedDataParallel(model, auto_wrap_policy=policy, mixed_precision=mixed, device_id=device,
                                     use_orig_params=True)
    loop(spec, model, device)


def fsdp2(spec):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "meta"}))
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    policy = MixedPrecisionPolicy() if kind is None else MixedPrecisionPolicy(param_dtype=kind,
                                                                              reduce_dtype=torch.float32)
    for block in blocks_of(model):
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device=device)
    loop(spec, model, device)


class Tokens:
    """Samples of one sequence each, of which there are always more."""

    def __init__(self, spec):
        self.spec = spec

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        ids = tokens({**self.spec, "micro_batch": 1}, "cpu")[0]
        return {"input_ids": ids, "labels": ids.clone()}


def launched_by_accelerate(path):
    """The environment that `accelerate launch --config_file` would give a rank."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import launch
    arguments, _, _ = _validate_launch_command(
        launch_command_parser().parse_args(["--config_file", path, "--num_machines", "1", "train.py"]))
    if arguments.use_deepspeed:
        _, given = launch.prepare_deepspeed_cmd_env(arguments)
    else:
        given = launch.prepare_multi_gpu_env(arguments)
    wanted = ("ACCELERATE_", "FSDP_", "MIXED_PRECISION")
    os.environ.update({name: value for name, value in given.items() if name.startswith(wanted)})


def hf_trainer(spec):
    import transformers
    if spec.get("accelerate_config"):
        launched_by_accelerate(spec["accelerate_config"])
    said = json.load(open(spec["training_args"])) if spec.get("training_args") else {}
    given = {"per_device_train_batch_size": spec["micro_batch"], "max_steps": spec["steps"], "report_to": [],
             "save_strategy": "no", "logging_steps": 1, "dataloader_num_workers": 0, "disable_tqdm": True}
    if spec.get("precision") in ("bf16", "fp16") and not spec.get("ds_config"):
        given[spec["precision"]] = True
    if spec.get("recompute"):
        given["gradient_checkpointing"] = True
    known = {**given, **said, **{name: given[name] for name in ("max_steps", "report_to", "save_strategy",
                                                                "disable_tqdm")}}
    known.pop("num_train_epochs", None)
    if spec.get("ds_config"):
        known["deepspeed"] = spec["ds_config"]
        file = json.load(open(spec["ds_config"]))  # the Trainer wants to hear the same from both
        for kind in ("bf16", "fp16"):
            if file.get(kind, {}).get("enabled") is True:
                known[kind] = True
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(**{**known, "output_dir": folder})
        place = "cpu"
        if spec.get("ds_config"):
            from transformers.integrations import is_deepspeed_zero3_enabled
            place = "zero.Init" if is_deepspeed_zero3_enabled() else "cpu"
        model = model_of({**spec, "place": place})
        if spec.get("lora_rank"):
            import peft
            model = peft.get_peft_model(model, peft.LoraConfig(r=spec["lora_rank"], task_type="CAUSAL_LM",
                                                               target_modules="all-linear"))
        transformers.Trainer(model=model, args=arguments, train_dataset=Tokens(spec)).train()


RECIPES = {"pytorch": plain, "ddp": ddp, "fsdp1": fsdp1, "fsdp2": fsdp2, "hf-trainer": hf_trainer}
SPEC = completed(json.load(open(sys.argv[1])))
RECIPES[SPEC["recipe"]](SPEC)
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
