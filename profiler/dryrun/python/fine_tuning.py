# What recipes share: a folder that goes with the run; and of fine-tuning frameworks the user's YAML, a model's folder as a
# hub would give it, made of its config.json alone (weights that are a hole in a file, a tokenizer of made-up words), and
# what a launcher sets.
import contextlib
import importlib.util
import json
import os
import random
import shutil
import sys
import tempfile


def refused(why):
    return SystemExit("shardscope dryrun: " + why)


def scratch():
    """A folder that goes with the dry run, even where the program is killed."""
    return tempfile.TemporaryDirectory(dir=os.environ["SHARDSCOPE_DRYRUN_FOLDER"])


@contextlib.contextmanager
def of_the_scaler():
    """Says where a GPU would end in the same error: TRL makes adapters of a quantized model bf16, fp16 or not."""
    try:
        yield
    except NotImplementedError as fault:
        if "_amp_foreach_non_finite_check_and_unscale" in str(fault) and "BFloat16" in str(fault):
            print("shardscope dryrun: a GPU would end so, too: fp16 scales gradients, and PyTorch's scaler takes none in "
                  "bf16, which TRL makes adapters of a quantized model. --precision bf16 runs (with bf16 and not fp16 in "
                  "--training-args), or --recipe hf-trainer, which keeps adapters in fp32", file=sys.stderr, flush=True)
        raise


def library(name, package, recipe):
    """Makes the framework's code a library's, of a clone, too, before PyTorch is loaded."""
    found = importlib.util.find_spec(name)
    if found is None:
        raise refused(f"the recipe {recipe} runs what is installed, and this Python has no {name}: pip install {package}, "
                      "or give --python PATH of one that has it")
    os.environ["SHARDSCOPE_DRYRUN_LIBRARY"] = os.path.dirname(os.path.abspath(found.origin)) + os.sep
    os.environ["HF_HUB_OFFLINE"] = "1"  # else whoever looks for what is not in the folder waits for the hub


def ranks():
    return int(os.environ.get("WORLD_SIZE", "1"))


def note_replaced(what, by, why):
    """For the answer: this ran, and not what was asked."""
    with open(os.path.join(os.environ["SHARDSCOPE_DRYRUN_FOLDER"], "replaced"), "a") as file:
        file.write(json.dumps({"what": what, "by": by, "why": why}) + "\n")


def settings_of(path, read):
    """What the framework's own reader of YAML makes of the file."""
    try:
        found = read(path)
    except OSError as fault:
        raise refused(f"{path}: {fault.strerror}") from None
    except Exception as fault:  # readers have faults of their own
        raise refused(f"{path} is no YAML: {fault}") from None
    if not isinstance(found, dict):
        raise refused(f"{path} has no settings: entries such as 'learning_rate: 1e-4'")
    return found


def without(settings, names, prefixes=()):
    """The settings that are kept, and the names of those that are not."""
    left = {name for name in settings if name in names or name.startswith(tuple(prefixes))}
    return {name: value for name, value in settings.items() if name not in left}, sorted(left)


def file_beside(said, path):
    """A file that the settings name: from the current folder as the framework has it, or from that of the settings."""
    for place in (said, os.path.join(os.path.dirname(path), said)):
        if os.path.isfile(place):
            return os.path.abspath(place)
    raise refused(f"{path} names {said}, which is neither in the current folder nor beside that file: give its whole path")


def launched_by_accelerate(path):
    """The environment that `accelerate launch --config_file` would give a rank."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import launch
    arguments, defaults, mixed = _validate_launch_command(
        launch_command_parser().parse_args(["--config_file", path, "--num_machines", "1", "train.py"]))
    if arguments.use_deepspeed:
        arguments.deepspeed_fields_from_accelerate_config = ",".join(
            [*(defaults.deepspeed_config if defaults else []), *(["mixed_precision"] if mixed else [])])
        _, given = launch.prepare_deepspeed_cmd_env(arguments)
    else:
        given = launch.prepare_multi_gpu_env(arguments)
    wanted = ("ACCELERATE_", "FSDP_", "MIXED_PRECISION")
    os.environ.update({name: value for name, value in given.items() if name.startswith(wanted)})


def one_of_a_launch():
    """What torchrun sets, where one rank is all there is."""
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": "0"}.items():
        os.environ.setdefault(name, value)


def source_of(given, said, entry):
    """The folder whose config.json the model is made of: that of --model, or what the settings name."""
    if given:
        return given
    if said and os.path.isfile(os.path.join(str(said), "config.json")):
        return str(said)
    raise refused(f"{entry} is {said or 'not said'}, which is no folder here that has a config.json, and nothing is read "
                  "from a hub: name a folder that has it there, or for the model that is trained give --model, its "
                  "config.json or a name that 'shardscope inspect --models' has")


def made_of(source, folder, words=()):
    """A folder with all that is needed to load the model that source/config.json describes; what was made for it."""
    import transformers
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(source):
        if name.endswith((".json", ".py", ".model", ".jinja", ".txt")) and not name.endswith(".index.json"):
            shutil.copy(os.path.join(source, name), folder)
    if "quantization_config" in json.load(open(os.path.join(folder, "config.json"))):
        raise refused("the model's config.json says that its weights are stored quantized (quantization_config), and how "
                      "they would be is not in it: take the config.json of the model that it was made from, and let the "
                      "settings quantize it")
    trusted = any(name.endswith(".py") for name in os.listdir(folder))
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
    write_hole(config, os.path.join(folder, "model.safetensors"), trusted)
    if any(os.path.exists(os.path.join(folder, name)) for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        return ["weights"]
    tokenizer_for(config, words).save_pretrained(folder)
    return ["weights", "tokenizer"]


def write_hole(config, path, trusted):
    """A file of weights under the names that a hub's has, whose numbers nobody has written: it takes no room."""
    import torch
    import transformers
    from model_samples import class_of
    text = config.get_text_config()
    kind = next((one for one in (getattr(config, "dtype", None), getattr(text, "dtype", None)) if one is not None),
                torch.float32)
    kind = getattr(torch, kind) if isinstance(kind, str) else kind
    with torch.device("meta"):
        model = (transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=True) if trusted
                 else class_of(config)._from_config(config))
    tied = set(getattr(model, "all_tied_weights_keys", None) or getattr(model, "_tied_weights_keys", None) or ())
    weights = {name: one for name, one in model.state_dict().items() if name not in tied or not text.tie_word_embeddings}
    try:
        from transformers.core_model_loading import revert_weight_conversion
        weights = revert_weight_conversion(model, weights)
    except ImportError:  # before transformers 5 a model has the names and shapes of its file
        pass
    short = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, one in weights.items():
        start, end = end, end + one.numel() * kind.itemsize
        header[name] = {"dtype": short[kind], "shape": list(one.shape), "data_offsets": [start, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + end)


def tokenizer_for(config, words):
    """As many words as the model has tokens, among them those that settings speak of; whitespace parts them."""
    import tokenizers
    import transformers
    text = config.get_text_config()
    end = text.eos_token_id
    end = end[0] if isinstance(end, (list, tuple)) else end
    size = text.vocab_size
    vocabulary = {f"t{number}": number for number in range(size)}
    special = list(dict.fromkeys(["<begin>", "<unknown>", *words]))
    for number, word in zip(range(size - 1, -1, -1), ["<end>", *special]):
        del vocabulary[f"t{number}"]
        vocabulary[word] = number
    if end is not None and 0 <= end < size:  # the model's own end, where the two change places
        other = next(word for word, number in vocabulary.items() if number == end)
        vocabulary[other], vocabulary["<end>"] = vocabulary["<end>"], end
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unknown>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.decoder = tokenizers.decoders.WordPiece(prefix="")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<begin>", eos_token="<end>",
                                                pad_token="<end>", unk_token="<unknown>")


def text_of(words, vocabulary=1000):
    """So many words that a tokenizer of ours knows; another's makes at least as many tokens of them."""
    return " ".join(f"t{random.randrange(vocabulary)}" for _ in range(words))


def tell(recipe, left, replaced):
    print(f"recipe {recipe}: left out:", ", ".join(left) or "nothing", "| replaced:", "; ".join(replaced), flush=True)
