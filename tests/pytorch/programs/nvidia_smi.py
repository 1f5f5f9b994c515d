# What shells out to nvidia-smi: PyTorch's report of its environment.
#
# dryrun: --devices 2
# peak: 4194304
import torch
from torch.utils import collect_env

kept = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
report = collect_env.get_env_info()
assert report.nvidia_gpu_models.count("GPU ") == 2, report.nvidia_gpu_models
assert report.nvidia_driver_version.split(".")[0].isdigit(), report.nvidia_driver_version
