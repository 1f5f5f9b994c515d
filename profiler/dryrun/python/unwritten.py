# What a recipe's framework makes of weights on the host: nobody has written to the weights, and nobody looks at casts and
# copies of them, so that memory is only taken, and costs no room. How much it would be, filled, is counted (PID.host).
import ctypes
import functools
import importlib
import math
import os
import weakref

LEAST_ELEMENTS = 1 << 20  # smaller ones may be frequencies, masks and other numbers that count
# Of what is newly taken, for the host's memory to be looked at again: each look goes over all of it.
LEAST_BYTES, LEAST_SHARE = 64 << 20, 32
KINDS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16"}
COPIES = ("to", "cpu", *KINDS)
IN_PLACE = ("zero_", "mul_", "div_", "add_", "sub_")


class Host:
    """Memory that nobody wrote to, and the most that the process would have had if somebody had."""

    def __init__(self, folder):
        self.path = os.path.join(folder, f"{os.getpid()}.host")
        self.storages = {}  # by address: a weak reference, bytes, and whether PyTorch keeps it for the next that asks
        self.new, self.most = 0, 0
        self.resident_pages = ctypes.CDLL(None).mincore

    def take(self, tensor):
        storage = tensor.untyped_storage()
        known = self.storages.get(storage.data_ptr())
        if known is None or known[0]() is not storage:
            self.storages[storage.data_ptr()] = (weakref.ref(storage), storage.nbytes(), tensor.is_pinned())
            self.new += storage.nbytes()
        if self.new >= max(LEAST_BYTES, self.most // LEAST_SHARE):
            self.look()
        return tensor

    def look(self):
        self.new = 0
        self.storages = {at: known for at, known in self.storages.items() if known[2] or known[0]() is not None}
        page = os.sysconf("SC_PAGESIZE")
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[1]) * page
        for at, (_, size, _) in self.storages.items():
            first, end = -(-at // page), (at + size) // page
            seen = (ctypes.c_ubyte * max(0, end - first))()
            if end > first and self.resident_pages(ctypes.c_void_p(first * page), ctypes.c_size_t((end - first) * page),
                                                   seen) == 0:
                taken += bytes(seen).count(0) * page
        if taken > self.most:
            self.most = taken
            with open(self.path, "w") as file:
                file.write(str(taken))


def prepare(torch, folder):
    host = Host(folder)
    functions = Functions(torch, host)
    for name in (*COPIES, "clone", "pin_memory", "copy_", *IN_PLACE):
        functions.replace(torch.Tensor, name)
    for name in ("zeros", "zeros_like"):
        functions.replace(torch, name)
    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(lambda *_: host.look())
    return host


class Functions:
    def __init__(self, torch, host):
        self.torch, self.host = torch, host
        self.weights = (torch.Tensor, torch.nn.Parameter)

    def replace(self, owner, name):
        function = getattr(owner, name)
        instead = self.in_place if name in IN_PLACE else getattr(self, name, self.cast)

        @functools.wraps(function)
        def unwritten(*arguments, **more):
            made = instead(name, arguments, more)
            if made is None:
                made = function(*arguments, **more)
                if not (name in COPIES and self.concerns(made) and arguments[0].is_cuda):
                    return made  # else the stand-in has not written to it either
            return self.host.take(made)

        setattr(owner, name, unwritten)

    def concerns(self, tensor):
        return (type(tensor) in self.weights and tensor.device.type == "cpu" and tensor.numel() >= LEAST_ELEMENTS and
                tensor.is_floating_point() and not (tensor.requires_grad and self.torch.is_grad_enabled()))

    def like(self, tensor, **more):
        return self.torch.empty_like(tensor, requires_grad=False, **more)

    # What a call makes; None: what it would.
    def cast(self, name, arguments, more):
        if not self.concerns(arguments[0]):
            return None
        kind = self.kind_of(name, arguments[1:], more)
        if kind in (None, arguments[0].dtype) or not kind.is_floating_point:
            return None
        return self.like(arguments[0], dtype=kind)

    def kind_of(self, name, arguments, more):
        """What a cast on the host asks for; None where something else is asked."""
        if name in KINDS:
            return getattr(self.torch, KINDS[name])
        try:
            device, kind = self.torch._C._nn._parse_to(*arguments, **more)[:2]
        except (RuntimeError, TypeError):
            return None
        return kind if device is None or device.type == "cpu" else None

    def clone(self, name, arguments, more):
        return self.like(arguments[0], **more) if self.concerns(arguments[0]) else None

    def pin_memory(self, name, arguments, more):
        if not self.concerns(arguments[0]) or arguments[0].is_pinned():
            return None
        return self.like(arguments[0], pin_memory=True)

    def copy_(self, name, arguments, more):
        to, source = arguments[0], arguments[1] if len(arguments) > 1 else more.get("src", more.get("other"))
        if not self.concerns(to):
            return None
        if self.torch.is_tensor(source) and source.is_cuda:
            self.host.take(to)  # which the stand-in does not write to either
        return to if self.concerns(source) and to.shape == source.shape else None

    def in_place(self, name, arguments, more):
        return arguments[0] if self.concerns(arguments[0]) else None

    def zeros(self, name, arguments, more):
        sizes = more.get("size", arguments[0] if len(arguments) == 1 else arguments)
        sizes = (sizes,) if isinstance(sizes, int) else sizes
        if "out" in more or not all(isinstance(size, int) for size in sizes) or math.prod(sizes) < LEAST_ELEMENTS:
            return None
        device = more.get("device")
        kind = more.get("dtype") or self.torch.get_default_dtype()
        if self.torch.device(device or self.torch.get_default_device()).type != "cpu" or not kind.is_floating_point:
            return None
        return self.torch.empty(*arguments, **more)

    def zeros_like(self, name, arguments, more):
        tensor = arguments[0]
        if not self.concerns(tensor.detach()) or self.torch.device(more.get("device") or "cpu").type != "cpu":
            return None
        return self.torch.empty_like(*arguments, **more)


class HostAdam:
    """DeepSpeed's optimizer on the host, which has no memory of its own, and whose results nobody looks at."""

    def __getattr__(self, name):
        return lambda *arguments: 0


def without_host_adam(builder):
    builder.load = lambda self, verbose=True: HostAdam()
