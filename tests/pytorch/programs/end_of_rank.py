# A rank that ends without destroying its group, whose threads live on behind Python's end. It ends with its own exit code.
#
# dryrun: --world-size 8 --rank 7
# exit: 6
import ctypes
import os
import sys

import torch
import torch.distributed as dist

os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"
os.environ["TORCH_NCCL_COORD_CHECK_MILSEC"] = "4000"  # not while Python ends, which would end the thread
dist.init_process_group("nccl")
assert os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
torch.cuda.set_device(7)
dist.all_reduce(torch.ones(8, device="cuda"))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(dist.group.WORLD))  # as DDP's reducer may keep it
# The C library calls it with the exit code, after Python: as many seconds as those threads want.
library = ctypes.CDLL(None)
library.on_exit(library.sleep, None)
sys.exit(6)
