# What torch.cuda asks NVML for, with cards chosen by their numbers.
#
# dryrun: --devices 4
# needs: pynvml
# peak: 104857600
# out_of_memory: 1
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "2,1"
import torch

kept = torch.empty(100 << 20, dtype=torch.uint8, device="cuda:0")
assert torch.cuda.device_count() == 2
assert [torch.cuda.device_memory_used(card) for card in (0, 1)] == [100 << 20, 0]
assert torch.cuda.utilization() == torch.cuda.memory_usage() == 0
assert torch.cuda.temperature() > 0 and torch.cuda.power_draw() > 0 and torch.cuda.clock_rate() > 0
assert "100.000 MB GPU memory" in torch.cuda.list_gpu_processes(0)
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda:0")
except torch.OutOfMemoryError as fault:
    assert "this process has 100.00 MiB memory in use" in str(fault), fault
