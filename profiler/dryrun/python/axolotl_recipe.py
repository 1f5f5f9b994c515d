# A training run of axolotl on the YAML that a user has: its own do_cli, samples of random tokens as long as sequence_len in
# place of the data, a model of a config.json alone, and nothing saved, logged, evaluated or sent.
import importlib.util
import json
import os
import random
import sys

import fine_tuning
from fine_tuning import refused, scratch

# What is the user's data, or what a few steps make no use of.
LEFT_OUT = {
    "datasets", "test_datasets", "pretraining_dataset", "streaming", "shuffle_merged_datasets", "val_set_size",
    "skip_prepare_dataset", "push_dataset_to_hub", "dataloader_num_workers", "dataloader_prefetch_factor",
    "chat_template", "chat_template_jinja", "default_system_message", "train_on_inputs", "output_dir", "num_epochs",
    "max_steps", "evals_per_epoch", "saves_per_epoch", "early_stopping_patience", "load_best_model_at_end",
    "metric_for_best_model", "greater_is_better", "resume_from_checkpoint", "auto_resume_from_checkpoints",
    "lora_model_dir", "do_bench_eval", "do_causal_lm_eval", "use_tensorboard", "use_wandb", "use_mlflow", "use_comet",
    "use_trackio", "use_ray", "profiler_steps", "profiler_steps_start", "hf_use_auth_token", "debug", "base_model_config",
    "tokenizer_config", "revision_of_model", "strict"}
PREFIXES = ("save_", "eval_", "logging_", "dataset_", "wandb_", "mlflow_", "comet_", "swanlab_", "trackio_", "hub_", "ray_",
            "gradio_", "streaming_")


def write_samples(path, settings, number):
    """Samples of random tokens; packed, two make one."""
    long = int(settings.get("sequence_len") or 512)
    lengths = [long // 2, long - long // 2] if settings.get("sample_packing") and long > 1 else [long]
    with open(path, "w") as file:
        for _ in range(number):
            for length in lengths:
                ids = [random.randrange(100) for _ in range(length)]
                file.write(json.dumps({"input_ids": ids, "attention_mask": [1] * length, "labels": ids}) + "\n")
    return [{"path": path, "ds_type": "json", "type": None}]


def words_of(settings):
    """Tokens that the settings take the tokenizer to have, so that the model's table of them stays as long."""
    special = settings.get("special_tokens") or {}
    flat = [each for value in special.values() for each in (value if isinstance(value, list) else [value])]
    return [str(each) for each in [*flat, *(settings.get("tokens") or [])]]


def without_flash_attention(settings):
    """Where flash-attn is asked for and not installed PyTorch's own runs, whose backward keeps the same."""
    asked = settings.get("flash_attention") or "flash_attention" in str(settings.get("attn_implementation", ""))
    if not asked or importlib.util.find_spec("flash_attn") is not None:
        return []
    for name in [name for name in settings if name.startswith("flash_attn_") or name == "flash_attention"]:
        del settings[name]
    settings["attn_implementation"] = "sdpa"
    fine_tuning.note_replaced("flash-attn", "scaled_dot_product_attention", "it is not installed")
    return ["flash-attn, which is not installed, by PyTorch's attention"]


def run(spec, folder):
    import yaml
    path = spec["axolotl_config"]

    def read(place):
        with open(place) as file:
            return yaml.safe_load(file)

    said = fine_tuning.settings_of(path, read)
    if said.get("rl") or said.get("reward_model") or said.get("process_reward_model"):
        raise refused("the recipe axolotl trains on samples, and this file on pairs, rewards or what the model generates: "
                      f"with data and weights at hand it runs as it is: shardscope dryrun -- axolotl train {path}")
    settings, left = fine_tuning.without(said, LEFT_OUT, PREFIXES)
    source = fine_tuning.source_of(spec.get("model"), settings.get("base_model"), "base_model")
    if isinstance(settings.get("deepspeed"), str):
        settings["deepspeed"] = fine_tuning.file_beside(settings["deepspeed"], path)
        fine_tuning.one_of_a_launch()
    replaced = without_flash_attention(settings)
    model = os.path.join(folder, "model")
    made = fine_tuning.made_of(source, model, words_of(settings))
    if "tokenizer" in made:
        for name in [name for name in settings if name.startswith("tokenizer_")]:
            del settings[name]
    number = spec["steps"] * fine_tuning.ranks()  # of all steps: axolotl counts them by its samples
    for name in ("micro_batch_size", "gradient_accumulation_steps"):
        number *= int(settings.get(name) or 1)
    settings.update({
        "base_model": model, "datasets": write_samples(os.path.join(folder, "samples.jsonl"), settings, number),
        "dataset_prepared_path": os.path.join(folder, "prepared"), "dataset_num_proc": 1, "val_set_size": 0,
        "max_steps": spec["steps"], "num_epochs": 1, "save_strategy": "no", "logging_steps": 1,
        "output_dir": os.path.join(folder, "output")})
    fine_tuning.tell("axolotl", [*left, "saving of the model", "its card"],
                     ["data by samples of random tokens", *(f"{what} of base_model by made-up ones" for what in made),
                      *replaced])
    changed = os.path.join(folder, "run.yaml")
    with open(changed, "w") as file:
        yaml.safe_dump(settings, file)
    import axolotl.cli.train
    import axolotl.train
    for saves in ("save_trained_model", "create_model_card", "save_initial_configs"):
        if hasattr(axolotl.train, saves):
            setattr(axolotl.train, saves, lambda *arguments, **more: None)
    sys.argv[1:] = []
    axolotl.cli.train.do_cli(changed)


if __name__ == "__main__":
    os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"
    fine_tuning.library("axolotl", "axolotl", "axolotl")
    with scratch() as place:
        run(json.load(open(sys.argv[1])), place)
