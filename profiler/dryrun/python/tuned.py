# Kernels among whose variants torch.compile chooses by timing them: taken as tuned before, as Inductor's cache on disk has
# them from a program's second run on. To time them takes memory that stays reserved, and of which blocks are cut later.
import os

TUNED = os.path.join(os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", ""), "tuned")


def note(kernel):
    """A line each time; a kernel may have several, of processes that compile it and run it (collect.cpp)."""
    with open(TUNED, "a") as file:
        file.write(f"{kernel}\n")


def take_over(heuristics):
    cache = getattr(heuristics, "AutotuneCache", None)
    if hasattr(cache, "read_best"):
        def read_best(entry, inductor_meta, configs):
            # The first as good as any: what a variant takes of the allocator is the same. It is the only one compiled.
            note(inductor_meta.get("kernel_name"))
            configs[0].found_by_coordesc = True  # as a cache's, which has been searched around
            return configs[0]

        cache.read_best = read_best

    tuner = getattr(heuristics, "CachingAutotuner", None)
    if hasattr(tuner, "benchmark_all_configs"):
        def benchmark_all_configs(kernel, *arguments, **more):
            note(kernel.inductor_meta.get("kernel_name"))
            return {launcher: float(number) for number, launcher in enumerate(kernel.launchers)}

        tuner.benchmark_all_configs = benchmark_all_configs
