# DistributedDataParallel with SyncBatchNorm, a sampler and no_sync, rank 5 of 16 on two hosts.
#
# dryrun: --world-size 16 --rank 13 --assume-zeros
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
assert (dist.get_rank(), dist.get_world_size(), device) == (13, 16, 5)
net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10)).cuda()
model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net), device_ids=[device], gradient_as_bucket_view=True)
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.zeros(512, 3, 32, 32), torch.zeros(512, dtype=torch.long))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data), pin_memory=True)
for step, (images, labels) in enumerate(loader):
    images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    if step % 2 == 0:
        with model.no_sync():
            nn.functional.cross_entropy(model(images), labels).backward()
        continue
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
seen = [None] * dist.get_world_size()
dist.all_gather_object(seen, {"rank": dist.get_rank()})
name = ["model" if dist.get_rank() == 0 else None]
dist.broadcast_object_list(name)
dist.barrier()
print(len(seen), step)
dist.destroy_process_group()
