# What the program's optimizers hold behind each step: parameters, gradients and states, by the address of their memory and
# behind so many allocations, which PyTorch counts, so that it is told without a clock which blocks these are (holdings.cpp).
import collections
import json

# Of more steps the last ones are told; an optimizer of its own for each parameter takes many.
MOST_MARKS = 1000
DEEPEST = 4  # lists, dictionaries and objects within each other


class Holdings:
    def __init__(self, torch, allocations):
        self.torch, self.allocations = torch, allocations
        self.marks = collections.deque(maxlen=MOST_MARKS)
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

    def add(self, value, found, depth=DEEPEST):
        """Device and address of each tensor in it, whatever it is wrapped in."""
        if isinstance(value, self.torch.Tensor):
            parts = getattr(value, "__tensor_flatten__", None)
            if parts is not None:  # of many devices, quantized
                for name in parts()[0]:
                    self.add(getattr(value, name), found, depth)
            elif value.is_cuda and value.numel() > 0:
                found.append((value.device.index, value.untyped_storage().data_ptr()))
        elif depth > 0:
            inner = (value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else
                     vars(value).values() if hasattr(value, "__dict__") and not callable(value) else ())
            for each in inner:
                self.add(each, found, depth - 1)

    def stepped(self, optimizer):
        if self.compiling():
            return
        held = {"parameter": [], "gradient": [], "optimizer_state": []}
        try:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self.add(parameter, held["parameter"])
                    if parameter.grad is not None:
                        self.add(parameter.grad, held["gradient"])
            for state in list(optimizer.state.values()):
                self.add(state, held["optimizer_state"])
        except (AttributeError, RuntimeError, TypeError, ValueError):  # a tensor without memory, a group of something else
            return
        self.marks.append((self.allocations(), held))

    def write(self, path):
        with open(path, "w") as file:
            json.dump({"marks": list(self.marks), "allocations": self.allocations()}, file)
