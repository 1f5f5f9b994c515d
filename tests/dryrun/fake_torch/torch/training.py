# Modules, an optimizer and backward, as much of them as tells which part of a run is under way.
import sys
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
    hooks = []

    def step(self):
        self.update()
        for hook in self.hooks:
            hook(self, (), {})

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def install(torch):
    torch.nn = types.SimpleNamespace(Module=Module)
    optimizer = types.ModuleType("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook = Optimizer.hooks.append
    torch.optim = types.SimpleNamespace(Optimizer=Optimizer)
    sys.modules["torch.optim.optimizer"] = optimizer
    torch.autograd = types.SimpleNamespace(backward=lambda run: run())
    torch.save = torch.load = lambda run: run()
    memory = torch.cuda.memory
    torch.cuda.is_initialized = lambda: bool(memory.recording)
    memory.memory_stats_as_nested_dict = lambda device: {"allocation": {"all": {
        "allocated": sum(event["action"] == "alloc" for event in memory.events)}}}
