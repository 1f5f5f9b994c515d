# Steps of optimizers and calls of backward: how many there were, since without either nothing was trained, and what is
# waited for at the end of one.
import ctypes
import functools
import os
import sys
import threading
import time
import weakref

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
    holdings = None if phases is None else sys.modules["shardscope_holdings"].Holdings(torch, phases.allocations)
    prepare.holdings = holdings
    seen = {"backward": 0, "at_step": -1, "captured": False}
    capturing = getattr(getattr(torch, "cuda", None), "is_current_stream_capturing", lambda: False)

    def trained():
        count(0)
        if phases is not None:
            phases.took_step()
        if work is not None:
            work.stepped()
        let_watchdog_look()

    def stepped(optimizer, arguments, more):
        if holdings is not None:
            holdings.stepped(optimizer)
        # One step of training may be several of optimizers: of groups, of parts, one within another.
        if seen["backward"] == 0 or seen["backward"] != seen["at_step"]:
            seen["at_step"] = seen["backward"]
            if capturing():
                seen["captured"] = True
            else:
                trained()

    optimizers.register_optimizer_step_post_hook(stepped)

    def went_backward():
        seen["backward"] += 1
        count(1)
        if phases is not None:
            phases.went_backward()

    see_backward(torch, went_backward)
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    if graph is not None and hasattr(graph, "replay"):
        see_graphs(graph, seen, trained, work)


def see_backward(torch, went_backward):
    """Calls of backward, by the front door or, as pipelines have it (Megatron's custom_backward), by the engine's."""
    backward = torch.autograd.backward
    within = threading.local()

    @functools.wraps(backward)
    def counted(*arguments, **more):
        went_backward()
        outer, within.counted = getattr(within, "counted", False), True
        try:
            return backward(*arguments, **more)
        finally:
            within.counted = outer

    torch.autograd.backward = counted
    variable = getattr(torch.autograd, "Variable", None)
    engine = type(getattr(variable, "_execution_engine", None))
    if not hasattr(engine, "run_backward"):
        return

    class Engine(engine):
        def run_backward(self, *arguments, accumulate_grad=False, **more):
            # Without it gradients are the answer, as of torch.autograd.grad, and no parameter has any.
            if accumulate_grad and not getattr(within, "counted", False):
                went_backward()
            return super().run_backward(*arguments, accumulate_grad=accumulate_grad, **more)

    variable._execution_engine = Engine()


def see_graphs(graph, seen, trained, work):
    """A graph that an optimizer's step was captured in takes that step when it is launched, not before."""
    begin, end, launch = graph.capture_begin, graph.capture_end, graph.replay
    holds_step = weakref.WeakSet()

    @functools.wraps(begin)
    def begins(captured, *arguments, **more):
        seen["captured"] = False
        if work is not None:
            work.captures()
        return begin(captured, *arguments, **more)

    @functools.wraps(end)
    def ends(captured, *arguments, **more):
        if seen["captured"]:
            holds_step.add(captured)
        return end(captured, *arguments, **more)

    @functools.wraps(launch)
    def launches(captured, *arguments, **more):
        result = launch(captured, *arguments, **more)
        if captured in holds_step:
            trained()
        return result

    graph.capture_begin, graph.capture_end, graph.replay = begins, ends, launches
