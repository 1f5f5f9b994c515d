# Modules, an optimizer and backward, as much of them as tells which part of a run is under way.
import ctypes
import json
import os
import sys
import threading
import time
import types


class Module:
    def __init__(self):
        self.training = True

    def __call__(self, *arguments):
        return self._call_impl(*arguments)

    def _call_impl(self, *arguments):
        return self.forward(*arguments)

    def train(self, mode=True):
        self.training = mode

    def eval(self):
        self.train(False)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Optimizer:
    hooks, param_groups, state = [], (), {}

    def step(self):
        self.update()
        for hook in self.hooks:
            hook(self, (), {})

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Profile:
    """A profiler that sees one operator: all that ran while it was on. There is one at a time."""
    running = None

    def __init__(self, activities=(), record_shapes=False):
        self.activities, self.record_shapes = activities, record_shapes

        self.prepared = False

    def _prepare_trace(self):
        self.prepared = True

    def start(self):
        if not self.prepared:
            self._prepare_trace()
        if Profile.running is not None:
            raise RuntimeError("a profiler is running")
        Profile.running = self
        self.begin = time.time_ns()

    def stop(self):
        if Profile.running is not self:
            raise RuntimeError("this profiler is not running")
        Profile.running = None
        self.end = time.time_ns()

    def export_chrome_trace(self, path):
        operator = {"ph": "X", "cat": "cpu_op", "name": "mylib::all_of_it", "pid": os.getpid(),
                    "tid": threading.get_native_id(), "ts": 0, "dur": (self.end - self.begin) / 1000,
                    "args": {"External id": 1, "Input Dims": [[2, 3]], "Input type": ["float"]}}
        with open(path, "w") as file:
            json.dump({"baseTimeNanoseconds": self.begin, "traceEvents": [operator]}, file)


class EmitNvtx:
    """Names ranges of operators, by the one profiler there is."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled and Profile.running is not None:
            raise RuntimeError("a profiler is running")

    def __exit__(self, *fault):
        pass


class Graph:
    """Holds what the functions give the GPU that run between begin and end."""
    capturing = False

    def capture_begin(self):
        Graph.capturing = True
        self.library, self.graph, self.launched = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.cudaStreamBeginCapture(None, 0) == 0

    def capture_end(self):
        Graph.capturing = False
        assert self.library.cudaStreamEndCapture(None, ctypes.byref(self.graph)) == 0
        assert self.library.cudaGraphInstantiate(ctypes.byref(self.launched), self.graph, ctypes.c_ulonglong(0)) == 0

    def replay(self):
        assert self.library.cudaGraphLaunch(self.launched, None) == 0


class Tensor:
    """An `empty` that may have a gradient."""

    def __init__(self, memory, is_cuda=True):
        self.memory, self.is_cuda, self.grad = memory, is_cuda, None
        self.device = types.SimpleNamespace(index=0)

    def numel(self):
        return self.memory.size

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.memory.address)


def install(torch):
    torch.Tensor = Tensor
    torch.cuda.CUDAGraph, torch.cuda.is_current_stream_capturing = Graph, lambda: Graph.capturing
    torch.nn = types.SimpleNamespace(Module=Module, modules=types.SimpleNamespace(module=types.SimpleNamespace()))
    torch.profiler = types.SimpleNamespace(profile=Profile, ProfilerActivity=types.SimpleNamespace(CPU=0))
    optimizer = types.ModuleType("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook = Optimizer.hooks.append
    torch.optim = types.SimpleNamespace(Optimizer=Optimizer)
    sys.modules["torch.optim.optimizer"] = optimizer
    torch.autograd = types.SimpleNamespace(backward=lambda run: run(),
                                           profiler=types.SimpleNamespace(profile=Profile, emit_nvtx=EmitNvtx))
    torch.save = torch.load = lambda run: run()
    memory = torch.cuda.memory
    torch.cuda.is_initialized = lambda: bool(memory.recording)
    memory.memory_stats_as_nested_dict = lambda device: {"allocation": {"all": {
        "allocated": sum(event["action"] == "alloc" for event in memory.events)}}}
