# What a step asks of the GPU, for who prices it: the stand-in keeps what is launched, PyTorch's profiler says which
# operators with which shapes launched it. Each step has a file of its own.
import ctypes
import functools
import inspect
import os
import threading

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
# The first prepares more than others do: states of optimizers, compiled code, captured graphs.
MOST_STEPS = 4


class Work:
    def __init__(self, torch):
        self.torch, self.owner = torch, os.getpid()
        library = ctypes.CDLL(None)
        self.keep, self.mark = library.shardscope_standin_keep_work, library.shardscope_standin_work_step
        # Without it newer ones warn that a recording has its own events alone.
        parameters = inspect.signature(torch.profiler.profile.__init__).parameters
        self.more = {"acc_events": True} if "acc_events" in parameters else {}
        self.step = 0
        self.profile = None
        self.gave_way = False
        self.ours = False  # a profiler is being made, by this class
        self.ended = False
        self.kept = False
        self.most_steps = MOST_STEPS

    def start(self):
        """Called when PyTorch first uses a GPU."""
        self.keep(1)
        self.begin_operators()

    def moves_a_model(self):
        """A recorder holds tensors, which models that are moved or made exchange: what was recorded of that is left out,
        and it goes on when a module is called."""
        if self.profile is None or self.owner != os.getpid() or self.step > 0:
            return
        self.end_operators(keep=False)
        hooks = self.torch.nn.modules.module

        def first_call(module, arguments):
            handle.remove()
            if self.owner == os.getpid() and self.profile is None and not self.ended:
                self.begin_operators()

        handle = hooks.register_module_forward_pre_hook(first_call)

    def begin_operators(self):
        if self.gave_way:
            return
        profiler = self.torch.profiler
        self.ours = True
        try:
            self.profile = profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True, **self.more)
            # PyTorch 2.11 crashes, then or later, where a recording is thrown away: it stays to the process's end.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.profile))
            self.profile.start()
            # Its export needs no objects in Python, which would take most of the time that a recording costs.
            inner = getattr(self.profile, "profiler", None)
            if hasattr(inner, "_parse_kineto_results"):
                inner._parse_kineto_results = lambda *arguments, **more: []
        except Exception:  # the program's own is on: its operators are not known
            self.profile = None
        finally:
            self.ours = False

    def end_operators(self, keep):
        profile, self.profile = self.profile, None
        if profile is None:
            return
        try:
            profile.stop()
            if keep:
                path = os.path.join(FOLDER, f"{os.getpid()}.{self.step}.operators.json")
                profile.export_chrome_trace(path)
                self.kept = True
        except Exception as fault:
            with open(os.path.join(FOLDER, f"{os.getpid()}.fault"), "w") as file:
                file.write(f"operators: {fault}")

    def give_way(self):
        """The program begins a profiler of its own; there can be one, and from now on it is the program's."""
        if self.ours:
            return
        self.gave_way = True
        if self.profile is not None and threading.current_thread() is threading.main_thread():
            self.end_operators(keep=not self.kept)

    def captures(self):
        """A graph is captured: the steps that launch it are those to price, and its operators are seen only now."""
        if self.owner != os.getpid():
            return
        self.most_steps = self.step + MOST_STEPS
        if self.ended and not self.gave_way:
            self.ended = False
            self.keep(1)
            self.begin_operators()

    def stepped(self):
        if self.owner != os.getpid():
            return
        self.step += 1
        if self.ended:
            return
        self.mark(self.step)
        self.end_operators(keep=True)
        if self.step < self.most_steps:
            self.begin_operators()
        else:
            self.ended = True
            self.keep(0)

    def finish(self):
        """At the program's end. What ran since the last step is no whole step, but all there is of a run without one."""
        if not self.ended and self.owner == os.getpid():
            self.ended = True
            self.keep(0)
            self.end_operators(keep=not self.kept)


def names_its_tensors(module):
    """Triton: a kernel's own launch is an operator with the tensors that it was given."""
    run = module.JITFunction.run

    @functools.wraps(run)
    def named(function, *arguments, **more):
        work = getattr(prepare, "work", None)
        if work is None or work.profile is None:
            return run(function, *arguments, **more)
        tensors = [each for each in (*arguments, *more.values()) if isinstance(each, work.torch.Tensor)]
        with work.torch._C._profiler._RecordFunctionFast(f"triton::{function.__name__}", tensors):
            return run(function, *arguments, **more)

    module.JITFunction.run = named


prepare_later = {"triton.runtime.jit": names_its_tensors} if "SHARDSCOPE_STANDIN_WORK" in os.environ else {}


def nobody_reads(ranges):
    """Ranges of operators for nsys come from PyTorch's one profiler, which is ours; in a dry run nobody records them."""
    begin = ranges.__enter__

    @functools.wraps(begin)
    def begins(self):
        self.enabled = False
        return begin(self)

    ranges.__enter__ = begins


def prepare(torch):
    if "SHARDSCOPE_STANDIN_WORK" not in os.environ or not hasattr(torch, "profiler"):
        return
    work = prepare.work = Work(torch)
    made = torch.autograd.profiler.profile
    begin = made._prepare_trace if hasattr(made, "_prepare_trace") else made.__enter__

    @functools.wraps(begin)
    def gives_way(profile, *arguments):
        work.give_way()
        return begin(profile, *arguments)

    setattr(made, begin.__name__, gives_way)
    for name in ("emit_nvtx", "emit_itt"):
        if hasattr(torch.autograd.profiler, name):
            nobody_reads(getattr(torch.autograd.profiler, name))
    if not hasattr(torch.nn.Module, "_apply"):
        return
    move = torch.nn.Module._apply

    @functools.wraps(move)
    def moved(module, *arguments, **more):
        work.moves_a_model()
        return move(module, *arguments, **more)

    torch.nn.Module._apply = moved
