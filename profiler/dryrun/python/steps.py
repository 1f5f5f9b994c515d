# Steps of optimizers and calls of backward: how many there were, since without either nothing was trained, and what is
# waited for at the end of one.
import ctypes
import functools
import os
import sys
import time

# PyTorch's watchdog looks at collectives ten times a second, and buffers of those that are over are kept until it does
# (ProcessGroupNCCL, kWatchdogThreadSleepMillis). A step on GPUs takes longer than that as a rule; here none does.
WATCHDOG_SECONDS = 0.25


def let_watchdog_look():
    distributed = sys.modules.get("torch.distributed")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and distributed is not None and distributed.is_initialized():
        time.sleep(WATCHDOG_SECONDS)


def prepare(torch):
    optimizers = sys.modules.get("torch.optim.optimizer")  # torch.optim does not name it
    if optimizers is None or not hasattr(torch, "autograd"):
        return
    library = ctypes.CDLL(None)
    count = library.shardscope_standin_count_step
    phases = getattr(sys.modules["shardscope_phases"].prepare, "phases", None)  # none of a PyTorch that is not whole
    work = getattr(sys.modules["shardscope_work"].prepare, "work", None)
    seen = {"backward": 0, "at_step": -1}

    def stepped(optimizer, arguments, more):
        # One step of training may be several of optimizers: of groups, of parts, one within another.
        if seen["backward"] == 0 or seen["backward"] != seen["at_step"]:
            seen["at_step"] = seen["backward"]
            count(0)
            if phases is not None:
                phases.took_step()
            if work is not None:
                work.stepped()
            let_watchdog_look()

    optimizers.register_optimizer_step_post_hook(stepped)
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def counted(*arguments, **more):
        seen["backward"] += 1
        count(1)
        if phases is not None:
            phases.went_backward()
        return backward(*arguments, **more)

    torch.autograd.backward = counted
