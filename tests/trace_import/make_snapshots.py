#!/usr/bin/env python3
# Writes one small snapshot per pickle protocol into tests/fuzz/corpus/snapshot_fuzz, with Python's own pickler.
import collections
import pathlib
import pickle

frames = [{"name": "forward", "filename": "model.py", "line": 7}, {"name": "main", "filename": "train.py", "line": 1}]
BASE = 140_000_000_000_000


def event(action, addr, size, time_us, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "frames": frames, **more}


snapshot = {
    "segments": [{
        "device": 0, "address": BASE, "total_size": 2 << 20, "allocated_size": 1536, "active_size": 1536, "stream": 0,
        "segment_type": "small", "is_expandable": False, "segment_pool_id": (0, 0), "frames": frames,
        "blocks": [
            {"address": BASE, "size": 1536, "requested_size": 1100, "state": "active_allocated", "frames": frames},
            {"address": BASE + 1536, "size": (2 << 20) - 1536, "requested_size": 0, "state": "inactive"},
        ],
    }],
    "device_traces": [[
        event("segment_alloc", BASE, 2 << 20, 1_700_000_000_000_001),
        event("alloc", BASE, 1100, 1_700_000_000_000_002),
        event("alloc", BASE + 1536, 600, 1_700_000_000_000_003, category="activation"),
        event("free_requested", BASE + 1536, 600, 1_700_000_000_000_004),
        event("free_completed", BASE + 1536, 600, 1_700_000_000_000_004),
        {"action": "oom", "size": 1 << 40, "stream": 0, "device_free": 5, "time_us": 1_700_000_000_000_005},
    ], []],
    "allocator_settings": {"expandable_segments": False, "PYTORCH_CUDA_ALLOC_CONF": "", "garbage_collection_threshold": 0.5},
    "external_annotations": [collections.OrderedDict(stage="START"), None, -(1 << 70), b"bytes", {1, 2}],
}
# As PyTorch 2.0 wrote it: what was asked for, and by whom, in a list; no addresses of blocks, no times.
history = [{"addr": BASE, "real_size": 1100, "frames": frames}]
of_2_0 = {
    "segments": [{
        "device": 0, "address": BASE, "total_size": 2 << 20, "allocated_size": 1536, "active_size": 1536, "stream": 0,
        "segment_type": "small",
        "blocks": [
            {"size": 1536, "state": "active_allocated", "history": history},
            {"size": (2 << 20) - 1536, "state": "inactive"},
        ],
    }],
    "device_traces": [[
        {"action": "alloc", "addr": BASE, "size": 1100, "stream": 0, "frames": frames},
        {"action": "alloc", "addr": BASE + 1536, "size": 600, "stream": 0, "frames": frames[1:]},
        {"action": "free", "addr": BASE + 1536, "size": 600, "stream": 0, "frames": frames[1:]},
    ]],
}
folder = pathlib.Path(__file__).resolve().parent.parent / "fuzz/corpus/snapshot_fuzz"
folder.mkdir(parents=True, exist_ok=True)
for protocol in range(2, 6):
    (folder / f"protocol{protocol}.pickle").write_bytes(pickle.dumps(snapshot, protocol=protocol))
(folder / "of_2_0.pickle").write_bytes(pickle.dumps(of_2_0, protocol=4))
