# A library of custom kernels that is not installed: its ImportError, and the exit code.
#
# exit: 1
# says: No module named
import torch

torch.zeros(1, device="cuda")
import bitsandbytes_that_is_not_there
