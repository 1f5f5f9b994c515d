# How often the program took a step of an optimizer and called backward: without either it has not trained.
import ctypes
import functools
import sys


def prepare(torch):
    optimizers = sys.modules.get("torch.optim.optimizer")  # torch.optim does not name it
    if optimizers is None or not hasattr(torch, "autograd"):
        return
    library = ctypes.CDLL(None)
    count = library.shardscope_standin_count_step
    seen = {"backward": 0, "at_step": -1}

    def stepped(optimizer, arguments, more):
        # One step of training may be several of optimizers: of groups, of parts, one within another.
        if seen["backward"] == 0 or seen["backward"] != seen["at_step"]:
            seen["at_step"] = seen["backward"]
            count(0)

    optimizers.register_optimizer_step_post_hook(stepped)
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def counted(*arguments, **more):
        seen["backward"] += 1
        count(1)
        return backward(*arguments, **more)

    torch.autograd.backward = counted
