# A training run of Megatron-LM on the arguments that a file has: the framework's own pretrain script, mock data of the
# lengths that it would read, and nothing saved or loaded.
import functools
import importlib.util
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import sysconfig

# What needs files that only the user's cluster has, or writes some: with its values it is left out.
LEFT_OUT = {
    "--data-path", "--train-data-path", "--valid-data-path", "--test-data-path", "--data-args-path",
    "--per-split-data-args-path", "--per-dataset-sequences-path", "--data-cache-path", "--blend-path",
    "--vocab-file", "--merge-file", "--tokenizer-model", "--tokenizer-type", "--tiktoken-pattern", "--load",
    "--save", "--save-interval", "--save-retain-interval", "--non-persistent-save-interval",
    "--non-persistent-ckpt-type", "--pretrained-checkpoint", "--tensorboard-dir", "--wandb-project",
    "--wandb-exp-name", "--wandb-save-dir", "--wandb-entity", "--use-checkpoint-args",
    "--use-checkpoint-opt_param-scheduler", "--no-use-tokenizer-model-from-checkpoint-args", "--exit-interval",
    "--exit-duration-in-mins", "--exit-on-missing-checkpoint", "--rerun-mode", "--eval-iters", "--mock-data",
    "--train-iters", "--train-samples", "--lr-decay-iters", "--lr-decay-samples", "--lr-warmup-iters",
    "--lr-warmup-samples", "--lr-warmup-fraction", "--lr-wsd-decay-iters", "--lr-wsd-decay-samples",
    "--legacy-tokenizer", "--full-validation", "--async-save", "--auto-detect-ckpt-format", "--profile",
    "--profile-step-start", "--profile-step-end", "--record-memory-history", "--memory-snapshot-path",
    "--use-pytorch-profiler", "--enable-ft-package"}
# Tokens of the tokenizer that a script takes where none is named, and of those known by name.
VOCABULARIES = {"GPT2BPETokenizer": 50257, "BertWordPieceLowerCase": 30522, "BertWordPieceCase": 28996,
                "Llama2Tokenizer": 32000}


def values_of(read):
    """The entries of YAML or JSON: MODEL_ARGS and ENV_VARS as in Megatron's functional tests, or arguments alone."""
    of_tests = {name: read[name] for name in ("BASE_MODEL_ARGS", "MODEL_ARGS") if isinstance(read.get(name), dict)}
    arguments = {name: value for group in (of_tests or {"": read}).values() for name, value in group.items()}
    words = []
    for name, value in arguments.items():
        name = name if str(name).startswith("-") else "--" + str(name).replace("_", "-")
        if value is True:
            words.append([name])
        elif isinstance(value, (list, tuple)):
            words.append([name, *map(str, value)])
        elif value is not False and value is not None:
            text = str(value)
            words.append([name, *(text[1:-1] if text.startswith("[") and text.endswith("]") else text).split()])
    variables = {**(read.get("ENV_VARS") or {}), **(read.get("MODEL_ENV_VARS") or {})}
    return words, {name: str(value) for name, value in variables.items()}


def words_of(text):
    """The arguments in a launch script or a file of words: what NAME=... says is put where $NAME stands, an array of
    words where "${NAME[@]}" does, and what comes before a script's name is the launcher's."""
    text = text.replace("\\\n", " ")
    assignment = r"""^[ \t]*(?:export[ \t]+)?(\w+)=(\([^)]*\)|"[^"]*"|'[^']*'|[^\n]*)[^\n]*$"""
    said = dict(os.environ)
    for name, value in re.findall(assignment, text, re.M):
        value = value[1:-1] if value.startswith("(") else value
        said[name] = " ".join(part for word in shlex.split(value, comments=True) for part in expanded(word, said))
    commands = re.sub(assignment, "", text, flags=re.M).splitlines()
    of_script = [line for line in commands if re.search(r"pretrain\w*\.py|--num-layers|--hidden-size", line)]
    whole = max((value for value in said.values() if "--num-layers" in value), key=len, default="")
    arguments = [part for word in shlex.split(" ".join(of_script) or whole, comments=True)
                 for part in expanded(word, said)]
    scripts = [i for i, word in enumerate(arguments) if word.endswith(".py")]
    words = []
    for word in arguments[scripts[-1] + 1:] if scripts else arguments:
        if word.startswith("--"):
            name, given, value = word.partition("=")
            words.append([name, value] if given else [name])
        elif word.startswith(("|", ">", "2>", "&", ";")):
            break
        elif words:
            words[-1].append(word)
    return words, {}


def expanded(word, said):
    """A word with its variables' values, split as a shell would; a variable that nobody set stays."""
    missing = []

    def value(found):
        name, otherwise = found[1], found[2]
        if name not in said and otherwise is None:
            missing.append(name)
        return said.get(name, otherwise or "")

    text = re.sub(r"\$\{?(\w+)(?:\[@\])?(?::-([^}]*))?\}?", value, word) if "$" in word else word
    return [word] if missing else text.split() if text != word else [word]


def arguments_of(path):
    text = open(path).read()
    try:
        read = json.loads(text)
    except ValueError:
        read = None
        try:
            import yaml
            read = yaml.safe_load(text)
        except ImportError:
            if path.endswith((".yaml", ".yml")):
                raise SystemExit(f"shardscope dryrun: {path} is YAML, and this Python has no PyYAML: install it, or give "
                                 "the same as JSON") from None
        except yaml.YAMLError:
            pass  # a launch script is none
    return values_of(read) if isinstance(read, dict) else words_of(text)


def script_of(words, given):
    if given:
        return given
    names = {word[0] for word in words}
    if names & {"--encoder-seq-length", "--decoder-seq-length", "--decoder-num-layers", "--vocab-extra-ids"}:
        return "pretrain_t5.py"
    if names & {"--hybrid-layer-pattern", "--hybrid-override-pattern", "--hybrid-attention-ratio", "--is-hybrid-model"}:
        return "pretrain_mamba.py"
    if names & {"--bert-no-binary-head", "--bert-embedder-type"} or any("bert" in part for w in words for part in w):
        return "pretrain_bert.py"
    return "pretrain_gpt.py"


def helpers_built(folder):
    """Megatron's own C++ helper of data sets for the Python that runs, beside what the folder has of others."""
    try:
        import megatron.core.datasets.helpers_cpp  # noqa: F401
    except ImportError:
        import pybind11
        source = os.path.join(folder, "megatron", "core", "datasets", "helpers.cpp")
        from fine_tuning import scratch  # not beside it where it is asked for stages
        with scratch() as place:  # what is loaded needs its file no more
            built = os.path.join(place, "helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
            subprocess.run(["c++", "-O1", "-shared", "-std=c++17", "-fPIC", "-I" + pybind11.get_include(),
                            "-I" + sysconfig.get_paths()["include"], source, "-o", built], check=True)
            spec = importlib.util.spec_from_file_location("megatron.core.datasets.helpers_cpp", built)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        sys.modules["megatron.core.datasets.helpers_cpp"] = module
    import megatron.core.datasets.utils as utils
    utils.compile_helpers = lambda: None  # rank 0 would build it again, in the user's folder


class Samples:
    """Samples of T5 and BERT, which have no mock data of their own: numbers as long as real ones."""

    def __init__(self, script):
        self.script = script

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import numpy
        from megatron.training import get_args
        args = get_args()
        if self.script == "pretrain_t5.py":
            long, short = args.encoder_seq_length or args.seq_length, args.decoder_seq_length
            lengths = {"text_enc": long, "text_dec": short, "labels": short, "loss_mask": short, "enc_mask": long,
                       "dec_mask": short}
        else:
            lengths = dict.fromkeys(("text", "types", "labels", "loss_mask", "padding_mask"), args.seq_length)
        sample = {name: numpy.ones(length, dtype=numpy.int64) for name, length in lengths.items()}
        if self.script == "pretrain_bert.py":
            sample["is_random"] = 1
        return sample


def without_flash(words, variables):
    """What runs where flash-attn is asked for and nobody has installed it: cuDNN's fused attention, which keeps nearly
    the same. The answer says so, since it is not what was asked."""
    asked = next((word for word in words if word[0] == "--attention-backend" and word[1:] == ["flash"]), None)
    if asked is None or any(importlib.util.find_spec(name) for name in ("flash_attn", "flash_attn_3")):
        return
    asked[1] = "fused"
    for name in ("NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN", "NVTE_UNFUSED_ATTN"):  # Megatron sets them as it needs them
        variables.pop(name, None)
        os.environ.pop(name, None)
    from fine_tuning import note_replaced  # not beside it where it is asked for stages
    note_replaced("--attention-backend flash", "cuDNN's fused attention", "flash-attn is not installed")


def without_apex():
    """What apex would do: PyPI does not have it, and what its parts take is known."""
    import apex_parts  # not beside it where it is asked for stages
    from fine_tuning import note_replaced
    apex_parts.take_their_place(lambda what: note_replaced(what, "what takes as much", "apex is not installed"))


def act_as_root(module, name):
    """One rank alone does what the first of its tensor-parallel group does where that one tells the others."""
    from megatron.core import parallel_state
    original = getattr(module, name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        own = parallel_state.get_tensor_model_parallel_rank
        group = parallel_state.get_tensor_model_parallel_group()
        rank = type(group).rank
        parallel_state.get_tensor_model_parallel_rank = lambda *a, **k: 0
        type(group).rank = lambda self: 0 if self is group else rank(self)
        try:
            return original(*args, **kwargs)
        finally:
            parallel_state.get_tensor_model_parallel_rank = own
            type(group).rank = rank

    setattr(module, name, wrapped)


def stages(spec):
    """How many stages the pipeline has, and how many ranks are from one to the next (0: as many as a stage has)."""
    words, _ = arguments_of(spec["megatron_args"])
    said = {word[0]: os.path.expandvars(word[-1]) for word in words}

    def degree(name):
        try:
            return int(said.get(name, 1))
        except ValueError:
            raise SystemExit(f"shardscope dryrun: {name} is {said[name]} in {spec['megatron_args']}, and nobody set that") \
                from None

    inner = degree("--tensor-model-parallel-size") * degree("--context-parallel-size")
    return {"stages": degree("--pipeline-model-parallel-size"),
            "apart": inner if "--use-tp-pp-dp-mapping" in said else 0}


def run(spec):
    folder = spec["megatron"]
    sys.path.insert(0, folder)
    os.environ["SHARDSCOPE_DRYRUN_LIBRARY"] = os.path.join(folder, "megatron") + os.sep
    words, variables = arguments_of(spec["megatron_args"])
    if not words:
        raise SystemExit(f"shardscope dryrun: no arguments of Megatron's were found in {spec['megatron_args']}: a launch "
                         "script, or YAML or JSON with MODEL_ARGS")
    without_flash(words, variables)
    without_apex()
    os.environ.update(variables)
    script = script_of(words, spec.get("script"))
    unknown = {word[0] for word in words for part in word[1:] if "$" in os.path.expandvars(part)}
    kept = [list(map(os.path.expandvars, word)) for word in words if word[0] not in LEFT_OUT | unknown]
    left = sorted({word[0] for word in words if word[0] in LEFT_OUT | unknown})
    tokenizer = next((word[1] for word in words if word[0] == "--tokenizer-type" and len(word) > 1), None)
    names = {word[0] for word in kept}
    if "--vocab-size" not in names:
        by_script = "GPT2BPETokenizer" if script in ("pretrain_gpt.py", "pretrain_mamba.py") else "BertWordPieceLowerCase"
        size = VOCABULARIES.get(tokenizer or by_script)
        if size is None:
            raise SystemExit(f"shardscope dryrun: how many tokens {tokenizer} has is in a file of its own: add "
                             "--vocab-size N to the arguments")
        kept.append(["--vocab-size", str(size - 1)])  # the stand-in of a tokenizer adds one, the end of a document
    kept += [["--tokenizer-type", "NullTokenizer"], ["--train-iters", str(spec["steps"])], ["--eval-iters", "0"],
             ["--lr-decay-iters", "1000"]]
    if script in ("pretrain_gpt.py", "pretrain_mamba.py"):
        kept.append(["--mock-data"])
    print("recipe megatron:", script, "left out:", " ".join(left), flush=True)

    helpers_built(folder)
    import megatron.core.tensor_parallel.data as data
    import megatron.training.training as training
    if script in ("pretrain_t5.py", "pretrain_bert.py"):
        training.build_train_valid_test_datasets = lambda *a, **k: (Samples(script), None, None)
    if not os.environ.get("SHARDSCOPE_STANDIN_RANKS"):  # else those who tell run, too
        act_as_root(data, "_build_key_size_numel_dictionaries")
        act_as_root(training, "build_train_valid_test_data_loaders")
    sys.argv = [os.path.join(folder, script), *[part for word in kept for part in word]]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    run(json.load(open(sys.argv[1])))
