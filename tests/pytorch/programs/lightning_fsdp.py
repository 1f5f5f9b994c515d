# Lightning under FSDP, rank 1 of 2 alone: paths that Lightning broadcasts it has itself; it saves states of both.
#
# dryrun: --world-size 2 --rank 1
# needs: lightning
# steps: 3
import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader


class Layers(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(4)])

    def training_step(self, batch, index):
        loss = self.layers(batch).square().mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(accelerator="gpu", devices=2, strategy="fsdp", precision="bf16-true", max_steps=3,
                                logger=False, default_root_dir=folder, enable_progress_bar=False)
    trainer.fit(Layers(), DataLoader([torch.randn(512) for _ in range(64)], batch_size=8))
