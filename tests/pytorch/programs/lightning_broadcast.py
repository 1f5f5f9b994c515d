# What the program itself broadcasts through Lightning: one rank alone does not have it.
#
# dryrun: --world-size 2 --rank 1
# needs: lightning
# exit: 1
# says: what rank 0 broadcasts is asked for
import lightning
import torch

fabric = lightning.Fabric(accelerator="gpu", devices=2, strategy="fsdp")
fabric.launch()
torch.ones(1, device=fabric.device)
width = fabric.broadcast(1024 if fabric.global_rank == 0 else None)
print(width)
