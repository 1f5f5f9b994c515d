# cuda-python beside PyTorch: its own runtime and the driver see the same card and the same memory.
#
# dryrun: --devices 2
# needs: cuda.bindings
# peak: 4194304
import uuid

import torch
from cuda.bindings import driver, runtime

torch.cuda.set_device(1)
kept = torch.empty(4 << 20, dtype=torch.uint8, device="cuda:1")
ok, device = runtime.cudaGetDevice()
assert ok == runtime.cudaError_t.cudaSuccess and device == 1
ok, name = driver.cuDeviceGetUuid(device)
assert uuid.UUID(bytes=name.bytes) == uuid.UUID(str(torch.cuda.get_device_properties(1).uuid))
ok, free, total = runtime.cudaMemGetInfo()
assert (free, total) == torch.cuda.mem_get_info(1) and total > free
ok, address = driver.cuMemAlloc(2 << 20)
assert runtime.cudaMemGetInfo()[1] == free - (2 << 20)
assert driver.cuMemFree(address)[0] == driver.CUresult.CUDA_SUCCESS
