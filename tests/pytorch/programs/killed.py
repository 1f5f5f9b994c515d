# SIGKILL, which nobody can catch: how much was reserved and the signal are known, who held it is not.
#
# exit: 137
# signal: 9
# reserved: 20971520
import os
import signal

import torch

kept = torch.zeros(1 << 20, device="cuda")
os.kill(os.getpid(), signal.SIGKILL)
