# One rank alone: what libraries ask other ranks of, where this rank's own answer is right for each of them, library by
# library.
import functools
import inspect
import os


class OfRankZero:
    """The functions of torch.distributed, or of DeepSpeed's like it, for who asks which rank this is."""

    def __init__(self, comm):
        self.comm = comm

    def __getattr__(self, name):
        return (lambda *arguments, **more: 0) if name == "get_rank" else getattr(self.comm, name)


def as_root(module):
    """Checks of DeepSpeed's that ranks have the same lists: as rank 0 each sends its own, which it then gets."""
    module.dist = OfRankZero(module.dist)


def optimizer_keys_as_root(module):
    """FSDP 1 takes the names of an optimizer's states from rank 0, or puts those of all ranks together, where each has
    some parameters whole. This rank names those of others, too: it has no element of them."""
    original = module._map_param_key_to_optim_keys
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def own_keys(*arguments, **more):
        of_ranks, module.dist = module.dist, OfRankZero(module.dist)
        try:
            keys, local = original(*arguments, **more)
        finally:
            module.dist = of_ranks
        said = parameters.bind(*arguments, **more).arguments
        if said.get("merge_keys") and keys:
            managed = said["fqn_to_fsdp_param_info"]
            others = {module._OptimStateKey(tuple(names), True) for parameter in said["param_key_to_param"].values()
                      if parameter.numel() == 0 and (names := said["param_to_fqns"][parameter])[0] in managed}
            keys = sorted({*keys, *others})
        return keys, local

    module._map_param_key_to_optim_keys = own_keys
    convert = module._convert_all_state_info

    @functools.wraps(convert)
    def of_own_type(*arguments, **more):
        """The type of what is gathered is the last parameter's, of which this rank may have no element."""
        type_, buffers = convert(*arguments, **more)
        gathered = (each for of_name in buffers.values() for each in of_name if each is not None)
        return type_ or next((each.dtype for each in gathered), None), buffers

    module._convert_all_state_info = of_own_type


def own_checkpoint(module):
    """Each rank writes and reads its own pieces, which the coordinator only counts: this rank does so for itself."""
    class OfOneRank(module._DistWrapper):
        def __init__(self, group, use_dist, coordinator_rank):
            super().__init__(group, False, coordinator_rank)

    module._DistWrapper = OfOneRank


def own_pieces(module):
    """What a checkpoint has is whole with the other ranks' pieces only. PyTorch 2.13 wants a list of faults."""
    says_whether = inspect.signature(module._validate_global_plan).return_annotation in (bool, "bool")
    module._validate_global_plan = lambda *arguments: True if says_whether else []


def own_counts(module):
    """axolotl counts batches on every rank and broadcasts what rank 0 makes of that: this rank's are all ranks'."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    module.gather_scalar_from_all_ranks = module.gather_from_all_ranks = lambda count, world_size=1: [count()] * ranks
    module.compute_and_broadcast = lambda compute: compute()
    module.reduce_and_broadcast = lambda count, reduce: reduce([count()] * ranks)


prepare_later = {"deepspeed.runtime.zero.utils": as_root, "torch.distributed.checkpoint.utils": own_checkpoint,
                 "torch.distributed.checkpoint.default_planner": own_pieces, "axolotl.utils.distributed": own_counts,
                 "torch.distributed.fsdp._optim_utils": optimizer_keys_as_root}


def prepare(torch):
    """Libraries are loaded later."""
