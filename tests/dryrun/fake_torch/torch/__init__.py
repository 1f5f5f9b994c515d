# As much of PyTorch as a dry run needs: a GPU used through the functions that are loaded, and a recorded allocator.
import ctypes
import os
import pickle
import sys
import time
import types

from . import version

__version__ = version.__version__
_library = None


def _gpu():
    """The runtime that this process finds, as PyTorch's libraries would."""
    global _library
    if _library is None:
        _library = ctypes.CDLL(os.environ.get("FAKE_TORCH_LIBRARY"))
        for call in cuda._queued:
            call()
    return _library


class OutOfMemoryError(RuntimeError):
    pass


class _Memory(types.ModuleType):
    def __init__(self):
        super().__init__("torch.cuda.memory")
        self.events, self.segments, self.recording, self.peak = [], {}, False, 0

    def _record_memory_history(self, max_entries=0, context="all", stacks="all"):
        self.recording = True

    def _note(self, action, address, size):
        if not self.recording:
            return
        frames, frame = [], sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            frames.append({"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno})
            frame = frame.f_back
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0,
                            "time_us": time.time_ns() // 1000, "frames": frames})

    def _dump_snapshot(self, path):
        segments = [{"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
                     "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                     "is_expandable": True, "frames": [],
                     "blocks": [{"address": address, "size": used, "requested_size": used, "state": "active_allocated",
                                 "frames": []}]}
                    for address, (size, used) in self.segments.items() if used]
        with open(path, "wb") as file:
            kept = self.events[-int(os.environ.get("FAKE_TORCH_KEEPS", "1000000")):]
            pickle.dump({"segments": segments, "device_traces": [kept]}, file)


class _Cuda(types.ModuleType):
    def __init__(self):
        super().__init__("torch.cuda")
        self._queued, self.memory = [], _Memory()

    def init(self):
        _gpu()

    def device_count(self):
        return 1

    def max_memory_allocated(self, device):
        return self.memory.peak

    def _lazy_call(self, call):
        self._queued.append(call)


cuda = _Cuda()
distributed = types.SimpleNamespace(is_available=lambda: False)
sys.modules["torch.cuda"], sys.modules["torch.cuda.memory"] = cuda, cuda.memory


class empty:
    """So many bytes, a segment of their own."""

    def __init__(self, size):
        address = ctypes.c_void_p()
        self.size, memory = size, cuda.memory
        if _gpu().cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) != 0:
            memory._note("oom", 0, size)
            raise OutOfMemoryError(f"CUDA out of memory: {size} bytes")
        self.address = address.value
        memory.segments[self.address] = (size, size)
        memory._note("segment_map", self.address, size)
        memory._note("alloc", self.address, size)

    def free(self):
        memory = cuda.memory
        for action in ("free_requested", "free_completed"):
            memory._note(action, self.address, self.size)
        memory._note("segment_unmap", self.address, self.size)
        del memory.segments[self.address]
        assert _gpu().cudaFree(ctypes.c_void_p(self.address)) == 0


if os.environ.get("FAKE_TORCH_TRAINS"):
    from . import training
    training.install(sys.modules[__name__])
