# A training run of the installed framework on a model that its config.json describes: no weights are read, tokens are
# random, and everything else is what the framework does.
import contextlib
import json
import os
import sys

import torch

from fine_tuning import launched_by_accelerate, of_the_scaler, ranks, scratch
from model_samples import Samples, blocks_of, class_of, task_of


DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def model_of(spec):
    """The class that the library has for the model, in memory that nobody has written to."""
    import transformers
    config = transformers.AutoConfig.from_pretrained(spec["model"])
    dtype = getattr(torch, DTYPES[spec["weights"]]) if spec.get("weights") else None
    if dtype is None and int(transformers.__version__.split(".")[0]) < 5:
        dtype = torch.float32  # what from_pretrained takes where nothing is said; later ones take the config's
    config.use_cache = False
    more = {} if dtype is None else {"dtype": dtype}
    if spec.get("attention"):
        more["attn_implementation"] = spec["attention"]
    kind = class_of(config)
    if getattr(config, "pad_token_id", None) is None and "SequenceClassification" in kind.__name__:
        config.pad_token_id = 0  # where a text ends is looked for by it
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0  # a tokenizer's, else
    if spec.get("quantize"):
        return quantized(spec, kind, config, more)
    if spec["place"] == "zero.Init" or within_zero_init():
        return kind._from_config(config, **more)
    with torch.device("meta"):
        model = kind._from_config(config, **more)
    if spec["place"] != "meta":
        tied = getattr(model, "tie_weights", lambda: None)
        model.to_empty(device=spec["place"])
        tied()
    return model


def within_zero_init():
    """Whether the library itself makes models in shards: stage 3 by DeepSpeed's file, or by accelerate's."""
    try:
        from transformers.integrations import is_deepspeed_zero3_enabled
    except ImportError:
        return False
    return is_deepspeed_zero3_enabled()


def quantized(spec, kind, config, more):
    """The model as from_pretrained quantizes it while it loads, out of weights that nobody has written to."""
    import transformers
    try:
        import bitsandbytes  # noqa: F401
    except ImportError:
        raise SystemExit("shardscope dryrun: --quantize is done by bitsandbytes, which this Python has not: pip install "
                         "bitsandbytes, or give --python PATH of one that has it") from None
    computed = getattr(torch, DTYPES[spec["precision"]])
    if spec["quantize"] == "int8":
        how = transformers.BitsAndBytesConfig(load_in_8bit=True)
    else:
        # Sharded by FSDP, what is stored has to be of the type that the rest has.
        stored = {"bnb_4bit_quant_storage": computed} if os.environ.get("ACCELERATE_USE_FSDP") == "true" else {}
        how = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=spec["quantize"],
                                              bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=computed, **stored)
    with torch.device("meta"):
        whole = kind._from_config(config, **more)
    kept = dict(whole.named_parameters())  # each tied one once
    weights = {name: torch.empty(one.shape, dtype=one.dtype) for name, one in kept.items()}
    return type(whole).from_pretrained(None, config=config, state_dict=weights, quantization_config=how,
                                       device_map={"": torch.cuda.current_device()}, **more)


def samples_for(spec, model):
    made = Samples(model.config, type(model), spec["sequence"], spec["sequence_said"])
    if os.environ.get("LOCAL_RANK", "0") == "0":
        made.tell()
    return made


def completed(spec):
    """What was not said, as the model's configuration has it."""
    import transformers
    config = transformers.AutoConfig.from_pretrained(spec["model"])
    config = getattr(config, "text_config", config)
    longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 4096
    return {"sequence": min(4096, longest), "sequence_said": "sequence" in spec, **spec}


def meet():
    """The group of all ranks and this one's card."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    if "RANK" in os.environ:
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", local))
    elif SPEC["recipe"] != "pytorch":
        torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    return torch.device("cuda", local)


def set_up(spec, model):
    """What all loops of one's own have: checkpointing and a training mode."""
    model.train()
    if spec.get("recompute"):
        model.gradient_checkpointing_enable()
    return model


def loop(spec, model, samples, device):
    """Steps with AdamW; autocast where weights are fp32 and the precision is another."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    own = next(model.parameters()).dtype
    mixed = kind is not None and own == torch.float32 and spec["recipe"] in ("ddp", "pytorch")
    for _ in range(spec["steps"]):
        batch = samples.batch(spec["micro_batch"], device)
        with torch.autocast("cuda", dtype=kind, enabled=mixed):
            loss = model(**batch, **samples.flags()).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def plain(spec):
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "cuda"}))
    loop(spec, model, samples_for(spec, model), device)


def ddp(spec):
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "cuda"}))
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    loop(spec, wrapped, samples_for(spec, model), device)


def reduced_in(spec, kind):
    return torch.float32 if spec["reduce_dtype"] == "fp32" else kind


def fsdp1(spec):
    import functools
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "cpu"}))
    samples = samples_for(spec, model)
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(b) for b in blocks_of(model)})
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    mixed = None if kind is None else MixedPrecision(param_dtype=kind, reduce_dtype=reduced_in(spec, kind), buffer_dtype=kind)
    model = FullyShardedDataParallel(model, auto_wrap_policy=policy, mixed_precision=mixed, device_id=device,
                                     use_orig_params=True)
    loop(spec, model, samples, device)


def fsdp2(spec):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    device = meet()
    model = set_up(spec, model_of({**spec, "place": "meta"}))
    samples = samples_for(spec, model)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(spec["precision"])
    policy = MixedPrecisionPolicy() if kind is None else MixedPrecisionPolicy(param_dtype=kind,
                                                                              reduce_dtype=reduced_in(spec, kind))
    for block in blocks_of(model):
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device=device)
    loop(spec, model, samples, device)


class Dataset:
    """Samples one by one, of which there are always more."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return {name: values[0] for name, values in self.samples.batch(1, "cpu").items()}


def arguments_of(spec):
    """What TrainingArguments get: the user's, and of ours what he did not say."""
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
        named = {kind: file.get(kind, {}).get("enabled") for kind in ("bf16", "fp16")}
        # "auto" is what TrainingArguments say: what --precision is, where the user's own say nothing.
        asked = None if {"bf16", "fp16"} & said.keys() else spec.get("precision")
        for kind, enabled in named.items():
            if enabled is True or (enabled == "auto" and kind == asked and True not in named.values()):
                known[kind] = True
    return known


def without_writing(spec):
    """The framework casts weights on the host, too, and copies them; a PyTorch that has no such functions does as ever."""
    with contextlib.suppress(AttributeError):
        unwritten = sys.modules["sitecustomize"].load("unwritten")
        host = unwritten.prepare(torch, sys.modules["sitecustomize"].FOLDER)
        if spec.get("ds_config"):  # which keeps torch.zeros as it is then
            from deepspeed.ops.op_builder import CPUAdamBuilder
            unwritten.without_host_adam(CPUAdamBuilder)
        return host


def count_weights(host, model):
    """Those on the host, which nobody has written to."""
    for weight in model.parameters() if host is not None else ():
        if weight.device.type == "cpu":
            host.take(weight.data)


def place_of(spec):
    """Where the model is made, after the arguments: DeepSpeed's tell transformers of stage 3."""
    if spec.get("ds_config"):
        from transformers.integrations import is_deepspeed_zero3_enabled
        return "zero.Init" if is_deepspeed_zero3_enabled() else "cpu"
    return "cpu"


def lora_of(spec, model):
    import peft
    return peft.LoraConfig(r=spec["lora_rank"], task_type=task_of(type(model)), target_modules="all-linear")


def hf_trainer(spec):
    import transformers
    known = arguments_of(spec)
    host = without_writing(spec)
    with scratch() as folder:
        arguments = transformers.TrainingArguments(**{**known, "output_dir": folder})
        model = model_of({**spec, "place": place_of(spec)})
        count_weights(host, model)
        samples = samples_for(spec, model)

        def collate(rows):
            return {**transformers.default_data_collator(rows), **samples.flags()}

        if spec.get("lora_rank"):
            import peft
            if spec.get("quantize"):
                model = peft.prepare_model_for_kbit_training(
                    model, use_gradient_checkpointing=arguments.gradient_checkpointing)
            model = peft.get_peft_model(model, lora_of(spec, model))
        transformers.Trainer(model=model, args=arguments, train_dataset=Dataset(samples), data_collator=collate).train()


def tokenizer_of(model):
    """TRL asks a tokenizer for the token that ends and pads; nothing is left to tokenize."""
    import tokenizers
    import transformers
    end = model.config.get_text_config().eos_token_id
    end = end[0] if isinstance(end, (list, tuple)) else end
    words = tokenizers.models.WordLevel({"<end>": 0 if end is None else end}, unk_token="<end>")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), eos_token="<end>",
                                                pad_token="<end>")


def samples_of(spec, arguments, vocabulary):
    """The tokens of one step, which come again in the next. Packed, two samples make one as long as it gets."""
    import datasets
    rows = arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps * ranks()
    long = spec["sequence"]
    lengths = [long // 2, long - long // 2] if arguments.packing and long > 1 else [long]
    ids = [torch.randint(0, vocabulary, (length,)).tolist() for _ in range(rows) for length in lengths]
    return datasets.Dataset.from_dict({"input_ids": ids, "labels": ids})


def trl_sft(spec):
    try:
        import trl
    except ImportError as fault:
        raise SystemExit(f"shardscope dryrun: the recipe trl-sft is TRL's SFTTrainer ({fault}): pip install trl, or give "
                         "--python PATH of one that has it") from None
    known = arguments_of(spec)
    if spec["precision"] == "fp32" and not spec.get("ds_config"):
        known.setdefault("bf16", False)  # SFTConfig's own default is True
    if spec["sequence_said"]:
        known.setdefault("max_length", None if known.get("padding_free") else spec["sequence"])
    host = without_writing(spec)
    with scratch() as folder:
        arguments = trl.SFTConfig(**{**known, "output_dir": folder})
        if not spec["sequence_said"]:
            spec = {**spec, "sequence": min(spec["sequence"], arguments.max_length or spec["sequence"])}
        of_model = arguments.model_init_kwargs or {}  # what TRL itself would load the model with
        said = str(of_model.get("dtype", "float32"))
        named = next((short for short, whole in DTYPES.items() if whole == said), None)
        model = model_of({**spec, "place": place_of(spec), "weights": spec.get("weights") or named,
                          "attention": spec.get("attention") or of_model.get("attn_implementation")})
        count_weights(host, model)
        lora = {"peft_config": lora_of(spec, model)} if spec.get("lora_rank") else {}
        trainer = trl.SFTTrainer(model=model, args=arguments,
                                 train_dataset=samples_of(spec, arguments, model.config.get_text_config().vocab_size),
                                 processing_class=tokenizer_of(model), **lora)
        with of_the_scaler():
            trainer.train()


RECIPES = {"pytorch": plain, "ddp": ddp, "fsdp1": fsdp1, "fsdp2": fsdp2, "hf-trainer": hf_trainer,
           "trl-sft": trl_sft}
SPEC = completed(json.load(open(sys.argv[1])))
RECIPES[SPEC["recipe"]](SPEC)
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
