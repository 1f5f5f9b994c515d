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
    optimizers.register_optimizer_step_post_hook(lambda optimizer, arguments, more: count(0))
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def counted(*arguments, **more):
        count(1)
        return backward(*arguments, **more)

    torch.autograd.backward = counted
