# A kernel of torch.compile with variants to choose among: as from the second run on, nothing is taken to time them.
# dryrun: --cluster h100-80gb-x8
# needs: triton
# peak: 8388608
# reserved: 23068672
import torch


@torch.compile
def scaled(values):
    return values * 3 + 1


print(scaled(torch.randn(1 << 20, device="cuda")).shape)
