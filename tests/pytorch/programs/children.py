# Processes of its own: a fork, a subprocess, and two spawned ranks that meet; the one that took most is the answer.
#
# dryrun: --devices 2
# peak: 16777216
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(number, folder):
    dist.init_process_group("nccl", init_method=f"file://{folder}/meet", rank=number, world_size=2)
    torch.cuda.set_device(number)
    kept = torch.zeros((number + 3) << 20, device="cuda")
    dist.all_reduce(kept)
    dist.destroy_process_group()


if __name__ == "__main__":
    import tempfile

    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1 << 20, device='cuda')"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank, (folder,), nprocs=2)
