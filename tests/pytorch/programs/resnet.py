# A residual convolution net with batch norm, channels-last, bf16, SGD with momentum, then evaluation.
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.side = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride != 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.main(x) + self.side(x))


net = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                    Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                    nn.Linear(256, 100)).cuda().to(memory_format=torch.channels_last)
torch.backends.cudnn.benchmark = True
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(3):
    images = torch.randn(16, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(100, (16,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(images), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    right = (net(images).argmax(1) == labels).sum().item()
up = nn.ConvTranspose2d(8, 4, 4, 2, 1).cuda()
up(nn.functional.interpolate(torch.randn(2, 8, 8, 8, device="cuda"), scale_factor=2, mode="bilinear")).sum().backward()
nn.Conv3d(2, 2, 3).cuda()(torch.randn(1, 2, 8, 8, 8, device="cuda", requires_grad=True)).sum().backward()
nn.Conv1d(4, 4, 3, groups=4).cuda()(torch.randn(1, 4, 16, device="cuda")).sum().backward()
print("right", right)
