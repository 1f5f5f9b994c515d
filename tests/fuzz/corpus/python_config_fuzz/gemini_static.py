# Written anew after applications/Colossal-LLaMA/train.py of hpcaitech/ColossalAI: the plugin is chosen by an argument.
import argparse

from colossalai.booster.plugin import GeminiPlugin, LowLevelZeroPlugin


def plugin_of(args):
    if args.plugin == "gemini":
        plugin = GeminiPlugin(precision="bf16", placement_policy="static", shard_param_frac=1.0, offload_optim_frac=1.0,
                              offload_param_frac=0.5, max_norm=args.grad_clip, initial_scale=2**16)
    elif args.plugin == "zero2":
        plugin = LowLevelZeroPlugin(stage=2, precision="bf16")
    return plugin
