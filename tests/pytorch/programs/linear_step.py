# One layer without bias and SGD: parameters, gradients, input and output, by hand.
#
# A weight of 4096 x 4096 fp32 is 64 MiB, its gradient as much; 64 rows of input and of output are 1 MiB each, the
# output's gradient is the sum's, expanded; sum() takes 512 bytes, its gradient 512; the first product takes a workspace for each thread.
#
# peak: 203424768
import torch

layer = torch.nn.Linear(4096, 4096, bias=False, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
rows = torch.zeros(64, 4096, device="cuda")
for _ in range(3):
    optimizer.zero_grad()
    layer(rows).sum().backward()
    optimizer.step()
print("allocated", torch.cuda.max_memory_allocated())
