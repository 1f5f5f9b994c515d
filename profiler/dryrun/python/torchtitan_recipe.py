# A training run of torchtitan on a file of its settings: its own train entry point, random tokens in place of the data
# and the tokenizer, and nothing saved, loaded, logged or validated.
import dataclasses
import importlib.util
import json
import os
import sys

# Sections of what is written, logged, read or waited for: of them this is kept.
LEFT_OUT = {"job": ("custom_config_module",), "profiling": (), "metrics": (), "checkpoint": (), "validation": (),
            "comm": (), "fault_tolerance": ()}
# Entries that need the user's data, or that a few steps make no use of.
LEFT_OUT_ENTRIES = {("training", name) for name in ("dataset", "dataset_path", "steps", "dataloader", "num_workers")} | {
    ("model", "tokenizer_path"), ("model", "hf_assets_path"), ("model", "tokenizer_flavor"),
    ("training", "warmup_steps"), ("lr_scheduler", "warmup_steps"), ("lr_scheduler", "total_steps")}
# Where entries of older files stand now.
MOVED = {("training", "batch_size"): ("training", "local_batch_size"),
         ("training", "data_parallel_degree"): ("parallelism", "data_parallel_shard_degree"),
         ("training", "data_parallel_shard_degree"): ("parallelism", "data_parallel_shard_degree"),
         ("training", "data_parallel_replicate_degree"): ("parallelism", "data_parallel_replicate_degree"),
         ("training", "tensor_parallel_degree"): ("parallelism", "tensor_parallel_degree"),
         ("experimental", "pipeline_parallel_degree"): ("parallelism", "pipeline_parallel_degree"),
         ("experimental", "context_parallel_degree"): ("parallelism", "context_parallel_degree"),
         ("experimental", "enable_async_tensor_parallel"): ("parallelism", "enable_async_tensor_parallel"),
         ("experimental", "pipeline_parallel_schedule"): ("parallelism", "pipeline_parallel_schedule"),
         ("training", "enable_async_tensor_parallel"): ("parallelism", "enable_async_tensor_parallel"),
         ("parallelism", "tensor_parallel_size"): ("parallelism", "tensor_parallel_degree"),
         ("training", "compile"): ("compile", "enable")}
# What converts the model was called by these names in older files, and had a section of that name.
CONVERTERS = {"float8": ("quantize", "linear", "float8"), "mx": ("quantize", "linear", "mx")}


def refused(why):
    return SystemExit("shardscope dryrun: " + why)


def entries_of(path):
    """The entries of the file by section and name."""
    try:
        import tomllib
    except ImportError:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            read = tomllib.load(file)
    except tomllib.TOMLDecodeError as fault:
        raise refused(f"{path} is no TOML: {fault}") from None
    return {(section, name): value for section, values in read.items() if isinstance(values, dict)
            for name, value in values.items()}


def settled_converters(kept, converters, moved):
    """Names of what converts the model, of which the torchtitan that is there has `converters`."""
    names = kept.get("model", {}).get("converters") or []
    for at, name in enumerate(names):
        now = ".".join(CONVERTERS.get(name, ()))
        if name not in converters and now in converters:
            names[at] = now
            moved.append(f"model.converters {name} as {now}")
    unknown = [str(name) for name in names if converters and name not in converters]
    if unknown:
        raise refused(f"model.converters has {', '.join(unknown)}, and this torchtitan has {', '.join(sorted(converters))}")


def section_of_converter(kept, section, known):
    """Where the entries of such a section stand now; None where the torchtitan that is there has it, or has no other."""
    path = CONVERTERS.get(section, ())
    if section in known or not path or path[1] not in known.get(path[0], ()):
        return None
    for name in path:
        kept = kept.setdefault(name, {})
    return kept


def settled(entries, known, converters=()):
    """Sections for the torchtitan that is there, of which `known` are the dataclasses and `converters` the names of
    what converts its models; what was left out; and what was moved."""
    kept, left, moved, unknown = {}, [], [], []
    for (section, name), value in entries.items():
        dotted = f"{section}.{name}"
        if (section, name) in LEFT_OUT_ENTRIES or (section in LEFT_OUT and name not in LEFT_OUT[section]):
            left.append(dotted)
            continue
        if (section, name) == ("model", "norm_type") and "norm" in str(value):
            if str(value) not in ("rmsnorm", "fused_rmsnorm"):
                raise refused(f"the models of this torchtitan have rmsnorm alone, and model.norm_type is {value}: say "
                              "rmsnorm, or give --python PATH of the torchtitan that the file was written for")
            left.append(dotted)
            continue
        if (section, name) == ("float8", "enable_float8_linear"):
            if value:
                kept.setdefault("model", {}).setdefault("converters", []).append("float8")
            continue
        if section == "float8" and not entries.get(("float8", "enable_float8_linear"), True):
            left.append(dotted)
            continue
        place = (section, name)
        if (converter := section_of_converter(kept, section, known)) is not None:
            converter[name] = value
            moved.append(f"{dotted} as {'.'.join(CONVERTERS[section])}.{name}")
            continue
        if name not in known.get(section, ()) and place in MOVED:
            place = MOVED[place]
            moved.append(f"{dotted} as {place[0]}.{place[1]}")
        if place[1] not in known.get(place[0], ()):
            unknown.append(dotted)
            continue
        kept.setdefault(place[0], {})[place[1]] = value
    if unknown:
        raise refused(f"this torchtitan has no {', '.join(sorted(unknown))}: take that out of the file, or give --python "
                      "PATH of the torchtitan that the file was written for")
    settled_converters(kept, converters, moved)
    return kept, left, moved


class Tokenizer:
    """In place of the one that the model was made with; what it says of the number of tokens is the model's."""
    eos_id = bos_id = pad_id = 0

    def __init__(self, vocabulary):
        self.n_words = vocabulary

    def get_vocab_size(self):
        return self.n_words

    def encode(self, *arguments, **more):
        return [0]

    def decode(self, *arguments, **more):
        return ""


class Batches:
    """Batches of random tokens, of which there are always more."""

    def __init__(self, batch, sequence, vocabulary):
        self.shape, self.vocabulary = (batch, sequence + 1), vocabulary

    def __iter__(self):
        import torch
        while True:
            ids = torch.randint(0, self.vocabulary, self.shape)
            yield {"input": ids[:, :-1]}, ids[:, 1:]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


# Where a model's entry says -1, its tokenizer's number counts.
VOCABULARIES = {"llama3": 128256, "llama4": 202048, "deepseek_v3": 129280, "qwen3": 151936}


def replace_data(specs):
    """Models of torchtitan with tokens of ours."""
    original = specs.get_train_spec

    def replaced(name):
        spec = original(name)
        if name == "flux":
            raise refused("flux trains on images, and this recipe has tokens alone")

        def vocabulary(job):
            size = getattr(spec.model_args[job.model.flavor], "vocab_size", -1)
            size = size if size > 0 else VOCABULARIES.get(name, -1)
            if size <= 0:
                raise refused(f"how many tokens {name} has is in a tokenizer's file, and there is none")
            return size

        def loader(dp_world_size, dp_rank, tokenizer, job_config, **more):
            training = job_config.training
            return Batches(training.local_batch_size, training.seq_len, vocabulary(job_config))

        def tokenizer(job):
            if job.model.flavor not in spec.model_args:
                raise refused(f"torchtitan's {name} has no flavor {job.model.flavor}: it has "
                              f"{', '.join(spec.model_args)}")
            return Tokenizer(vocabulary(job))

        given = {"build_dataloader_fn": loader, "build_tokenizer_fn": tokenizer, "build_validator_fn": None,
                 "state_dict_adapter": None}
        have = {field.name for field in dataclasses.fields(spec)}
        return dataclasses.replace(spec, **{key: value for key, value in given.items() if key in have})

    specs.get_train_spec = replaced


def keep_peaks():
    """What torchtitan logs forgets the peak that there was; it is the run's that is asked for."""
    from torchtitan.components import metrics
    metrics.DeviceMemoryMonitor.reset_peak_stats = lambda self: None


def tell(left, moved, replaced):
    print("recipe torchtitan: left out:", " ".join(sorted(left)), "| read as:", "; ".join(moved) or "as it stands",
          "| replaced:", replaced, flush=True)


def stages(spec):
    """How many stages the pipeline has; each is told by the one before what it gets, so that all ranks have to run."""
    name, entries = ("parallelism", "pipeline_parallel_degree"), entries_of(spec["torchtitan_config"])
    return {"stages": next((value for place, value in entries.items() if name in (place, MOVED.get(place))), 1),
            "told": True}


def check_stage(kept):
    """A stage of a pipeline is told by the one before what it gets."""
    stages = kept.get("parallelism", {}).get("pipeline_parallel_degree", 1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if rank * stages // ranks > 0 and not os.environ.get("SHARDSCOPE_STANDIN_RANKS"):
        raise refused(f"rank {rank} is of a later stage of the pipeline, and shapes come from the one before: "
                      "--rank all, or --rank stages for the answer of one rank of each")


def converter_names():
    """What the torchtitan that is there can do to its models; nothing where it has no such list."""
    try:
        from torchtitan.protocols import model_converter
    except ImportError:
        return ()
    return tuple(getattr(model_converter, "_registry_model_converter_cls", ()))


def run_file(spec, folder):
    """The files of torchtitan 0.2, which are TOML; older ones' are read, too."""
    try:
        from torchtitan.config import ConfigManager, JobConfig
    except ImportError as fault:
        raise refused(f"this torchtitan is not of the 0.2 that the recipe runs, which reads TOML ({fault}): pip install "
                      "'torchtitan==0.2.*', or give --python PATH of one that has it") from None
    import torchtitan.protocols.train_spec as specs
    import torchtitan.train as train
    known = {section.name: {field.name for field in dataclasses.fields(section.default_factory())}
             for section in dataclasses.fields(JobConfig) if section.default_factory is not dataclasses.MISSING}
    kept, left, moved = settled(entries_of(spec["torchtitan_config"]), known, converter_names())
    check_stage(kept)
    kept.setdefault("training", {})["steps"] = spec["steps"]
    kept.setdefault("lr_scheduler", {})["warmup_steps"] = 1
    kept.setdefault("job", {})["dump_folder"] = folder
    tell(left, moved, "data and tokenizer by random tokens")
    replace_data(specs)
    keep_peaks()
    ConfigManager._maybe_load_toml = lambda self, args: kept
    train.main(train.Trainer)


def run(spec):
    sys.argv = ["train.py"]  # which torchtitan looks at while it is loaded
    found = importlib.util.find_spec("torchtitan")
    if found is None:
        raise refused("the recipe torchtitan runs what is installed, and this Python has no torchtitan: pip install "
                      "torchtitan, or give --python PATH of one that has it")
    # Of a clone, too, before PyTorch is loaded.
    os.environ["SHARDSCOPE_DRYRUN_LIBRARY"] = os.path.dirname(os.path.abspath(found.origin)) + os.sep
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": "0"}.items():
        os.environ.setdefault(name, value)
    from fine_tuning import scratch  # not beside it where it is asked for stages
    with scratch() as folder:
        run_file(spec, folder)


if __name__ == "__main__":
    run(json.load(open(sys.argv[1])))
