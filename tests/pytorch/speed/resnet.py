# A residual convolution net, six steps, on the device that is its argument.
import sys

import torch
from torch import nn

DEVICE = sys.argv[1]


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                                  nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.side = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride != 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.main(x) + self.side(x))


with torch.device(DEVICE):
    net = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), *[Block(64, 64, 1) for _ in range(8)], Block(64, 128, 2),
                        *[Block(128, 128, 1) for _ in range(8)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1000))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    images, labels = torch.zeros(64, 3, 224, 224, device=DEVICE), torch.zeros(64, dtype=torch.long, device=DEVICE)
    nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
