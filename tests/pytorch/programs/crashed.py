# A crash in native code: the signal, and the answer up to there.
#
# exit: 139
# signal: 11
# reserved: 20971520
import ctypes

import torch

kept = torch.zeros(1 << 20, device="cuda")
ctypes.string_at(0)
