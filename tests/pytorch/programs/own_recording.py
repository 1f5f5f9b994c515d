# A program that records its memory itself, and writes its own snapshot; the answer is the same.
#
# peak: 8388608
import os
import pickle
import tempfile

import torch

torch.cuda.memory._record_memory_history(max_entries=1000)
kept = torch.zeros(8 << 20, dtype=torch.uint8, device="cuda")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "own.pickle")
    torch.cuda.memory._dump_snapshot(path)
    with open(path, "rb") as file:
        own = pickle.load(file)
assert any(event["action"] == "alloc" for event in own["device_traces"][0])
torch.cuda.memory._record_memory_history(enabled=None)
