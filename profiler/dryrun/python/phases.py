# Which part of a run the allocator's events belong to: each part begins behind so many allocations, which PyTorch counts,
# so that events find theirs without a clock (phases.cpp).
import functools
import json
import threading


class Phases:
    def __init__(self, torch):
        self.torch = torch
        self.stepped = False      # an optimizer has taken a step: what comes is a steady step
        self.evaluating = False
        self.within = []          # save and load, one within another
        self.marks = []           # phase, allocations of each device before it
        self.first_backward = None

    def allocations(self):
        cuda = self.torch.cuda
        if not cuda.is_initialized():
            return []
        stats = cuda.memory.memory_stats_as_nested_dict
        return [stats(device)["allocation"]["all"]["allocated"] for device in range(cuda.device_count())]

    def mark(self):
        phase = (self.within[-1] if self.within else "evaluate" if self.evaluating
                 else "steady_step" if self.stepped else "creation")
        if self.marks[-1:] and self.marks[-1][0] == phase:
            return
        self.marks.append((phase, self.allocations()))

    def during(self, phase, function):
        """The function, outermost calls of which are a part of the run."""
        @functools.wraps(function)
        def within(*arguments, **more):
            if self.within or threading.current_thread() is not threading.main_thread():
                return function(*arguments, **more)
            self.within.append(phase)
            self.mark()
            try:
                return function(*arguments, **more)
            finally:
                self.within.pop()
                self.mark()
        return within

    def evaluates(self, evaluating):
        # Before the first step models are put into either mode while they are made.
        if self.evaluating != evaluating and self.first_backward is not None:
            self.evaluating = evaluating
            self.mark()

    def went_backward(self):
        if self.first_backward is None:
            self.first_backward = self.allocations()
        if self.evaluating:  # a part of the model alone was put into that mode, and trains on
            self.evaluating = False
            while self.marks and self.marks[-1][0] == "evaluate":
                self.marks.pop()
            self.mark()

    def took_step(self):
        if not self.stepped:
            self.stepped = True
            self.mark()

    def write(self, path):
        with open(path, "w") as file:
            json.dump({"marks": self.marks, "first_backward": self.first_backward, "stepped": self.stepped,
                       "allocations": self.allocations()}, file)


def save_functions(module):
    for name in ("save", "async_save"):
        if hasattr(module, name):
            setattr(module, name, prepare.phases.during("save", getattr(module, name)))


def load_functions(module):
    if hasattr(module, "load"):
        module.load = prepare.phases.during("load", module.load)


prepare_later = {"torch.distributed.checkpoint.state_dict_saver": save_functions,
                 "torch.distributed.checkpoint.state_dict_loader": load_functions}


def prepare(torch):
    if not all(hasattr(torch, part) for part in ("nn", "optim", "save", "load")):
        return
    phases = prepare.phases = Phases(torch)
    torch.save, torch.load = phases.during("save", torch.save), phases.during("load", torch.load)
    for kind in (torch.nn.Module, torch.optim.Optimizer):
        kind.state_dict = phases.during("save", kind.state_dict)
        kind.load_state_dict = phases.during("load", kind.load_state_dict)
    train = torch.nn.Module.train

    @functools.wraps(train)
    def trains(module, mode=True):
        phases.evaluates(not mode)
        return train(module, mode)

    torch.nn.Module.train = trains
