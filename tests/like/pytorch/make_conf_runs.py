#!/usr/bin/env python3
"""What PyTorch's caching allocator makes of random requests under settings of PYTORCH_CUDA_ALLOC_CONF, for
tests/data/allocator/conf_runs.tsv.

    shardscope dryrun --cluster t4-16gb-x4 -- python3 make_conf_runs.py --runs 60 --seed 1 --out conf_runs.tsv

Needs PyTorch for CUDA; the test that reads the file does not. Every run is a process of its own. Columns: the settings,
the memory fraction that the program sets (empty: none), its requests in order (`+BYTES` takes, `-K` frees the K-th taken,
`e` empties the cache, `s` says that what follows is on the other of two streams), then
after every request allocated and reserved bytes as `A/R`; `oom` where PyTorch gave up, which ends the run.
"""
import argparse, os, random, subprocess, sys

SETTINGS = [
    "",
    "max_split_size_mb:{split}",
    "max_split_size_mb:{split},max_non_split_rounding_mb:{rounding}",
    "roundup_power2_divisions:{power}",
    "roundup_power2_divisions:[64:{power},256:{power2},>:2]",
    "expandable_segments:True",
    "expandable_segments:True,roundup_power2_divisions:{power}",
    "expandable_segments:True,max_split_size_mb:{split}",
    "garbage_collection_threshold:{threshold}",
    "garbage_collection_threshold:{threshold},max_split_size_mb:{split}",
]


def settings(rng):
    return rng.choice(SETTINGS).format(
        split=rng.choice([20, 21, 32, 64, 128, 500]), rounding=rng.choice([20, 40, 100]), power=rng.choice([1, 2, 4, 8, 16]),
        power2=rng.choice([0, 2, 4, 8]), threshold=rng.choice([0.3, 0.5, 0.6, 0.8]))


def size(rng):
    kind = rng.random()
    if kind < 0.3:
        return rng.randint(1, 1 << 20)
    if kind < 0.6:
        return rng.randint(1 << 20, 20 << 20)
    if kind < 0.8:
        return rng.choice([1, 2, 4, 8, 16, 64, 256]) << 20
    return rng.randint(10 << 20, 700 << 20)


def requests(rng, tight):
    live, taken, said = [], 0, []
    for _ in range(rng.randint(20, 90)):
        kind = rng.random()
        if kind < 0.03:
            said.append("e")
        elif kind < 0.08:
            said.append("s")
        elif live and kind < (0.40 if tight else 0.50):
            said.append("-%d" % live.pop(rng.randrange(len(live))))
        else:
            said.append("+%d" % (size(rng) * (3 if tight else 1)))
            live.append(taken)
            taken += 1
    return said


def run(words, fraction):
    import torch

    if fraction:
        torch.cuda.set_per_process_memory_fraction(float(fraction))
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    at, blocks, figures = 0, [], []
    for word in words:
        try:
            if word == "e":
                torch.cuda.empty_cache()
            elif word == "s":
                at = 1 - at
            elif word[0] == "+":
                with torch.cuda.stream(streams[at]):
                    blocks.append(torch.empty(int(word[1:]), dtype=torch.uint8, device="cuda"))
            else:
                blocks[int(word[1:])] = None
        except torch.OutOfMemoryError:
            figures.append("oom")
            break
        figures.append("%d/%d" % (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
    print(" ".join(figures))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="conf_runs.tsv")
    parser.add_argument("--one", nargs=2, metavar=("FRACTION", "WORDS"))
    args = parser.parse_args()
    if args.one:
        return run(args.one[1].split(), args.one[0])
    rng = random.Random(args.seed)
    with open(args.out, "w") as out:
        out.write("conf\tfraction\trequests\tfigures\n")
        for _ in range(args.runs):
            conf = settings(rng)
            fraction = rng.choice(["0.25", "0.5", "0.75"]) if "garbage" in conf and rng.random() < 0.8 else ""
            words = requests(rng, tight=rng.random() < 0.4)
            environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
            done = subprocess.run([sys.executable, __file__, "--one", fraction, " ".join(words)], env=environment,
                                  stdout=subprocess.PIPE, text=True, check=True)
            out.write("\t".join([conf, fraction, " ".join(words), done.stdout.strip()]) + "\n")
            out.flush()


main()
