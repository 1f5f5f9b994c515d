# sys.exit with a number, from within a function, with threads running.
#
# exit: 7
# peak: 4194304
import sys
import threading

import torch

kept = torch.zeros(1 << 20, device="cuda")
threading.Thread(target=threading.Event().wait, daemon=True).start()


def finish():
    sys.exit(7)


finish()
