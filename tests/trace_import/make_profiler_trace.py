#!/usr/bin/env python3
# Writes tests/data/traces/pytorch-cpu.json.gz: PyTorch's profiler over three training steps of a small network on the
# CPU, with its memory. Needs torch from PyPI (2.5.1 was used): Debian's is built without Kineto.
import gzip
import pathlib
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, schedule

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
out = pathlib.Path(__file__).resolve().parent.parent / "data/traces/pytorch-cpu.json.gz"


def write(profiler):
    with tempfile.NamedTemporaryFile(suffix=".json") as plain:
        profiler.export_chrome_trace(plain.name)
        out.parent.mkdir(exist_ok=True)
        # No path and no time of writing inside, so that only the trace itself differs from run to run.
        with open(out, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(pathlib.Path(plain.name).read_bytes().replace(plain.name.encode(), b"pytorch-cpu.json"))


with profile(activities=[ProfilerActivity.CPU], profile_memory=True, schedule=schedule(wait=1, warmup=1, active=3),
             on_trace_ready=write) as profiler:
    for step in range(5):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 64)), torch.randint(0, 8, (16,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
