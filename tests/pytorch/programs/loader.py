# A DataLoader with two workers and pinned memory, copied without waiting; validation in between.
#
# pinned: 1
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index)), index % 10


if __name__ == "__main__":
    loader = DataLoader(Images(), batch_size=8, num_workers=2, pin_memory=True, persistent_workers=True, shuffle=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for images, labels in loader:
            assert images.is_pinned()
            images, labels = images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
            torch.nn.functional.cross_entropy(net(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    print("epochs", epoch + 1)
