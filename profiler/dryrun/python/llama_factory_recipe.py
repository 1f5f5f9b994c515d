# A training run of LLaMA-Factory on the YAML that a user has: its own run_exp, texts of random words in place of the
# data, a model of a config.json alone, and nothing saved, logged, evaluated or sent.
import json
import os
import sys

import fine_tuning
from fine_tuning import refused, scratch

# What is the user's data, or what a few steps make no use of.
LEFT_OUT = {
    "dataset", "eval_dataset", "dataset_dir", "media_dir", "streaming", "buffer_size", "mix_strategy",
    "interleave_probs", "overwrite_cache", "preprocessing_batch_size", "preprocessing_num_workers", "max_samples",
    "val_size", "eval_on_each_dataset", "tokenized_path", "data_shared_file_system", "dataloader_num_workers",
    "dataloader_prefetch_factor", "dataloader_persistent_workers", "output_dir", "overwrite_output_dir",
    "plot_loss", "report_to", "run_name", "project", "use_swanlab", "disable_tqdm", "include_effective_tokens_per_second",
    "do_train", "do_eval", "do_predict", "predict_with_generate", "per_device_eval_batch_size", "evaluation_strategy",
    "load_best_model_at_end", "metric_for_best_model", "early_stopping_steps", "compute_accuracy",
    "resume_from_checkpoint", "adapter_name_or_path", "num_train_epochs", "max_steps", "push_to_hub", "cache_dir",
    "hf_hub_token", "ms_hub_token", "om_hub_token", "model_revision", "enable_torch_profiler", "profile_modules",
    "use_ray", "master_addr", "master_port", "print_param_status"}
PREFIXES = ("save_", "eval_", "logging_", "hub_", "swanlab_", "trackio_", "profiler_", "ray_", "export_", "vllm_",
            "sglang_")
MODELS = ("model_name_or_path", "ref_model", "reward_model")


def rows(data, training, stage):
    """Samples of one step, which come again in the next, in the form that LLaMA-Factory makes of any data set. As long
    as cutoff_len, where the framework cuts them; packed, two make one."""
    import datasets
    packed = data.packing and stage != "pt"
    share = 8 if packed else 1
    prompt, response = max(1, data.cutoff_len // share), max(1, 2 * data.cutoff_len // share)
    number = training.per_device_train_batch_size * training.gradient_accumulation_steps * training.world_size
    columns = {name: [] for name in ("_prompt", "_response", "_system", "_tools", "_images", "_videos", "_audios")}
    for row in range(number * (2 if packed else 1)):
        said = [{"role": "assistant", "content": fine_tuning.text_of(response)}]
        if stage == "rm":
            said.append({"role": "assistant", "content": fine_tuning.text_of(response)})
        if stage == "kto":
            said.insert(row % 2, {"role": "assistant", "content": ""})
        columns["_prompt"].append([{"role": "user", "content": fine_tuning.text_of(prompt)}])
        columns["_response"].append(said)
        for name, value in (("_system", ""), ("_tools", ""), ("_images", None), ("_videos", None), ("_audios", None)):
            columns[name].append(value)
    return datasets.Dataset.from_dict(columns)


def replace_data_and_files():
    """What reads data sets, and what saves."""
    import transformers
    from llamafactory.data import loader

    def merged(names, model, data, training, stage, return_dict=False):
        return None if names is None else rows(data, training, stage)

    loader._get_merged_dataset = merged
    transformers.Trainer.save_model = lambda self, *arguments, **more: None
    for name, module in list(sys.modules.items()):
        for saves in ("create_modelcard_and_push", "fix_valuehead_checkpoint"):
            if name.startswith("llamafactory.train.") and hasattr(module, saves):
                setattr(module, saves, lambda *arguments, **more: None)


def words_of(settings):
    """Tokens that the template of the settings takes the tokenizer to have."""
    from llamafactory.data.template import TEMPLATES
    template = TEMPLATES.get(settings.get("template"))
    return list(getattr(template, "stop_words", None) or ())


def launched(spec, settings):
    """What `llamafactory-cli train` or `accelerate launch` sets for a rank."""
    if spec.get("accelerate_config"):
        fine_tuning.launched_by_accelerate(spec["accelerate_config"])
    elif fine_tuning.ranks() > 1 and os.environ.get("OPTIM_TORCH", "1").lower() in ("true", "y", "1"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        os.environ["TORCH_NCCL_AVOID_RECORD_STREAMS"] = "1"
    if settings.get("deepspeed") or spec.get("accelerate_config"):
        fine_tuning.one_of_a_launch()


def run(spec, folder):
    from omegaconf import OmegaConf
    path = spec["llama_factory_config"]
    said = fine_tuning.settings_of(path, lambda place: OmegaConf.to_container(OmegaConf.load(place)))
    if said.get("stage") == "ppo":
        raise refused("the stage ppo trains on what the model generates, whose length nobody knows: sft, pt, rm, dpo or kto")
    settings, left = fine_tuning.without(said, LEFT_OUT, PREFIXES)
    sources = {name: fine_tuning.source_of(spec.get("model") if name == MODELS[0] else None, settings.get(name), name)
               for name in MODELS if name == MODELS[0] or settings.get(name)}
    for name in ("deepspeed", "fsdp_config"):
        if isinstance(settings.get(name), str):
            settings[name] = fine_tuning.file_beside(settings[name], path)
    launched(spec, settings)
    from llamafactory.train import tuner
    made = []
    for name, source in sources.items():
        settings[name] = os.path.join(folder, name)
        made += [f"{what} of {name}" for what in fine_tuning.made_of(source, settings[name], words_of(settings))]
    fine_tuning.tell("llama-factory", [*left, "saving of the model", "its card"],
                     ["data by texts of random words", *(f"{one} by made-up ones" for one in made)])
    replace_data_and_files()
    settings.update({"do_train": True, "dataset": "random", "max_steps": spec["steps"], "report_to": "none",
                     "save_strategy": "no", "logging_steps": 1, "output_dir": os.path.join(folder, "output"),
                     "disable_tqdm": True})
    tuner.run_exp(settings)


if __name__ == "__main__":
    fine_tuning.library("llamafactory", "llamafactory", "llama-factory")
    with scratch() as place:
        run(json.load(open(sys.argv[1])), place)
