# What `shardscope dryrun` runs in the Python of the program, before the program: PyTorch records its allocator's events
# from its first use of a GPU on, and what it recorded is written when the process ends, however it does.
import atexit
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import time
import types

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
# Of a longer run the last ones are kept.
MOST_EVENTS = int(os.environ.get("SHARDSCOPE_DRYRUN_EVENTS", "500000"))
MOST_SECONDS_IN_SILENCE = 10
HERE = os.path.dirname(os.path.abspath(__file__))


# Modules and their packages, and those without which frameworks compute in another way.
SOFTWARE = {"torch": "torch", "triton": "triton", "transformers": "transformers", "accelerate": "accelerate",
            "deepspeed": "deepspeed", "peft": "peft", "trl": "trl", "bitsandbytes": "bitsandbytes",
            "llamafactory": "llamafactory", "torchtitan": "torchtitan", "megatron.core": "megatron-core",
            "flash_attn": "flash-attn", "transformer_engine": "transformer-engine", "apex": "apex",
            "xformers": "xformers", "liger_kernel": "liger-kernel", "torchao": "torchao",
            "fla": "flash-linear-attention", "mamba_ssm": "mamba-ssm", "causal_conv1d": "causal-conv1d"}
OPTIONAL = ("flash_attn", "transformer_engine", "apex", "xformers", "liger_kernel")


class Recording:
    def __init__(self):
        self.torch = None
        self.phases = None
        self.holdings = None
        self.work = None  # of a run whose time is asked for
        self.owner = 0  # the process that records: a fork of it has no GPU

    def start(self, torch):
        """Called by PyTorch when it first uses a GPU."""
        self.torch, self.owner = torch, os.getpid()
        # Stacks of allocations alone: to take those of frees, PyTorch 2.11 calls Python while an exception is under way,
        # and loses it. C++ frames tell backward's operators, which have no line of Python.
        try:
            self.record(max_entries=MOST_EVENTS, context="alloc", stacks="all")
        except Exception as fault:  # an allocator that cannot record (cudaMallocAsync): the program runs all the same
            self.torch = None
            self.give_up(fault)
        if self.work is not None:
            self.work.start()

    def give_up(self, fault):
        with open(os.path.join(FOLDER, f"{os.getpid()}.fault"), "w") as file:
            file.write(str(fault))

    def take_over(self, torch):
        """The program's own recording is this one: it can be looked at, but neither shortened nor ended."""
        memory = torch.cuda.memory
        self.record = memory._record_memory_history

        def already_recording(*arguments, **more):
            torch.cuda.init()

        memory._record_memory_history = already_recording

    def write_software(self):
        """What was there changes what is taken: the versions of what the program loaded, and what it might have used."""
        from importlib import metadata
        found = {}
        for module, package in SOFTWARE.items():
            if module in sys.modules and not hasattr(sys.modules[module], "stands_in"):
                try:
                    found[module] = metadata.version(package)
                except metadata.PackageNotFoundError:
                    found[module] = str(getattr(sys.modules[module], "__version__", "unknown"))
            elif module in OPTIONAL or module == "causal_conv1d" and "fla" in sys.modules:  # which takes PyTorch's without
                found[module] = None
        with open(os.path.join(FOLDER, f"{os.getpid()}.software"), "w") as file:
            json.dump(found, file)

    def write(self):
        if self.work is not None:
            self.work.finish()
        if self.torch is None or self.owner != os.getpid():
            return
        torch, self.torch = self.torch, None
        path = os.path.join(FOLDER, f"{os.getpid()}.pickle")
        try:
            with open(os.path.join(FOLDER, f"{os.getpid()}.peak"), "w") as file:
                file.write(str(max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())), default=0)))
            self.write_software()
            if self.phases is not None:
                self.phases.write(os.path.join(FOLDER, f"{os.getpid()}.phases"))
            if self.holdings is not None:
                self.holdings.write(os.path.join(FOLDER, f"{os.getpid()}.holdings"))
            torch.cuda.memory._dump_snapshot(path + ".part")
            os.replace(path + ".part", path)
        except Exception as fault:  # the program's end is not to change
            self.give_up(fault)


recording = Recording()


def load(name):
    """One of the modules beside this one, which the program's own paths do not have. Its frames are no lines of the
    program's, as those of Python's frozen modules are not."""
    module = sys.modules[f"shardscope_{name}"] = types.ModuleType(f"shardscope_{name}")
    with open(os.path.join(HERE, f"{name}.py")) as file:
        exec(compile(file.read(), f"<frozen shardscope {name}>", "exec"), module.__dict__)
    return module


def prepare(torch):
    recording.take_over(torch)
    torch.cuda._lazy_call(lambda: recording.start(torch))
    for name in ("routing", "assumptions", "followed"):
        load(name)
    phases = load("phases")
    work = load("work")
    load("holdings")
    steps = load("steps")
    parts = [phases, work, steps, load("small_values")]
    if hasattr(torch, "distributed") and torch.distributed.is_available():
        if os.environ.get("SHARDSCOPE_STANDIN_RANKS"):
            parts.append(load("together"))
        else:
            load("alone_store")
            parts += [load("alone"), load("alone_libraries")]
    for part in parts:
        try:
            part.prepare(torch)
        except (AttributeError, TypeError) as fault:  # a PyTorch that has no such function: its program runs all the same
            recording.give_up(f"{part.__name__}: {fault}")
    recording.phases = getattr(phases.prepare, "phases", None)
    recording.work = getattr(work.prepare, "work", None)
    recording.holdings = getattr(steps.prepare, "holdings", None)
    return parts


def tell_of_locks(module):
    """Builds of C++ extensions wait for each other by a file, and without a word for that of a build that was killed."""
    wait = module.FileBaton.wait

    @functools.wraps(wait)
    def wait_and_tell(baton):
        begin, path = time.monotonic(), os.path.abspath(baton.lock_file_path)
        while os.path.exists(path) and time.monotonic() < begin + MOST_SECONDS_IN_SILENCE:
            time.sleep(baton.wait_seconds)
        if os.path.exists(path):
            print(f"shardscope dryrun: the program waits for {path}, which says that another process builds a C++ "
                  "extension there. A build that was killed leaves it, too: where none runs, remove that file, or set "
                  "TORCH_EXTENSIONS_DIR to a folder of your own", file=sys.stderr, flush=True)
        return wait(baton)

    module.FileBaton.wait = wait_and_tell


class Finder(importlib.abc.MetaPathFinder):
    """Loads modules as ever, then changes them: torch, and what its parts name."""

    def __init__(self):
        self.changes = {"torch": self.prepare_torch,
                        "torch.utils.file_baton": tell_of_locks,
                        **dict.fromkeys(("cuda.bindings.cyruntime", "cuda.ccudart"), self.prepare_cuda_python),
                        # Where Inductor's kernels are, and were before PyTorch 2.5.
                        **dict.fromkeys(("torch._inductor.runtime.triton_heuristics",
                                         "torch._inductor.triton_heuristics"), self.prepare_inductor)}

    def prepare_torch(self, torch):
        for part in prepare(torch):
            self.changes.update(getattr(part, "prepare_later", {}))

    def prepare_cuda_python(self, module):
        load("cuda_python").take_over(module)

    def prepare_inductor(self, module):
        if "SHARDSCOPE_DRYRUN_FIRST_RUN" not in os.environ:
            load("tuned").take_over(module)
        values = sys.modules.get("shardscope_small_values")
        if values is not None and values.numbers is not None:
            values.numbers.take_over_compiled(module)

    def find_spec(self, name, path=None, target=None):
        """What the other finders find. Whether a module is there is often asked long before it is loaded, if ever."""
        if name not in self.changes:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.changes.pop(name, lambda _: None)(module)

        spec.loader.exec_module = exec_module
        return spec


def end_by_signal(number, frame):
    recording.write()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def write_at_end():
    """The last of what runs at the end. Python dies of an interrupt that nobody caught, but forgets it while we write."""
    recording.write()
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def install():
    sys.meta_path.insert(0, Finder())
    atexit.register(write_at_end)
    leave = os._exit

    def leave_after_writing(status):
        recording.write()
        leave(status)

    os._exit = leave_after_writing
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end_by_signal)


def chain():
    """The sitecustomize that this one stands in front of."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if FOLDER:
    install()
    chain()
