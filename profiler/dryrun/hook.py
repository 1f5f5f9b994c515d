# What `shardscope dryrun` runs in the Python of the program, before the program: PyTorch records its allocator's events
# from its first use of a GPU on, and what it recorded is written when the process ends, however it does.
import atexit
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
# Of a longer run the last ones are kept.
MOST_EVENTS = int(os.environ.get("SHARDSCOPE_DRYRUN_EVENTS", "500000"))
HERE = os.path.dirname(os.path.abspath(__file__))


class Recording:
    def __init__(self):
        self.torch = None
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

    def write(self):
        if self.torch is None or self.owner != os.getpid():
            return
        torch, self.torch = self.torch, None
        path = os.path.join(FOLDER, f"{os.getpid()}.pickle")
        try:
            with open(os.path.join(FOLDER, f"{os.getpid()}.peak"), "w") as file:
                file.write(str(max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())), default=0)))
            torch.cuda.memory._dump_snapshot(path + ".part")
            os.replace(path + ".part", path)
        except Exception as fault:  # the program's end is not to change
            self.give_up(fault)


recording = Recording()


def lone_store(torch):
    """A store for one rank among others that do not exist: what they would write is there when it is asked for."""
    from datetime import timedelta

    class LoneStore(torch.distributed.Store):
        def __init__(self, world_size):
            super().__init__()
            self.world_size, self.values = world_size, {}

        def set(self, key, value):
            self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            return self.values.get(key, bytes(128))

        def add(self, key, amount):
            # Whoever counts waits for all: the others have counted, too.
            count = int(self.values.get(key, b"0")) + (amount * self.world_size if amount > 0 else amount)
            self.values[key] = str(count).encode()
            return count

        def compare_set(self, key, expected, desired):
            if self.values.get(key, b"") == (expected.encode() if isinstance(expected, str) else bytes(expected)):
                self.set(key, desired)
            return self.values.get(key, b"")

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def check(self, keys):
            # Ranks tell each other of faults so: there are none.
            return all(key in self.values for key in keys)

        def wait(self, keys, timeout=None):
            pass

        def set_timeout(self, timeout):
            pass

        @property
        def timeout(self):
            return timedelta(seconds=300)

        def append(self, key, value):
            self.values[key] = self.values.get(key, b"") + value

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

    return LoneStore


def join_others(torch):
    """Rendezvous of a run of several ranks returns at once."""
    rendezvous = sys.modules.get("torch.distributed.rendezvous")
    if rendezvous is None or not hasattr(rendezvous, "_rendezvous_handlers"):
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = lone_store(torch)(size)  # kept: PyTorch holds what is C++ of it alone

    def handler(url, timeout=None, **more):
        handler.store = store
        yield store, rank, size

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = handler


def keep_own_objects(torch):
    """Objects that another rank would send: this rank keeps those that it has."""
    distributed = torch.distributed
    broadcast = distributed.broadcast_object_list

    @functools.wraps(broadcast)
    def broadcast_object_list(object_list, src=None, *arguments, **more):
        root = src if src is not None else more.get("group_src", 0)
        if distributed.get_rank() == root:
            broadcast(object_list, src, *arguments, **more)

    def scatter_object_list(output, inputs=None, src=None, *arguments, **more):
        if inputs:
            output[0] = inputs[distributed.get_rank()]

    for module in (distributed, distributed.distributed_c10d):
        module.broadcast_object_list = broadcast_object_list
        module.scatter_object_list = scatter_object_list


def prepare(torch):
    recording.take_over(torch)
    torch.cuda._lazy_call(lambda: recording.start(torch))
    if int(os.environ.get("SHARDSCOPE_DRYRUN_RANKS", "1")) > 1 and torch.distributed.is_available():
        join_others(torch)
        keep_own_objects(torch)


class TorchFinder(importlib.abc.MetaPathFinder):
    """Loads torch as ever, then prepares it."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            prepare(module)

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
    sys.meta_path.insert(0, TorchFinder())
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
