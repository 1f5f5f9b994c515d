# Factors of matrices, transforms and sparse matrices: the libraries are asked for sizes of workspaces that nobody here knows.
#
# steps: 3
# says: factorized
import torch
from torch import linalg

matrix = torch.randn(512, 512, device="cuda")
batch = torch.randn(16, 64, 64, device="cuda")
for factors in (linalg.qr, linalg.eigh, linalg.svd, linalg.cholesky, linalg.lu_factor, linalg.pinv, linalg.inv, linalg.ldl_factor):
    for kind in (torch.float32, torch.float64):
        factors(matrix.to(kind))
    factors(batch)
linalg.lstsq(matrix, matrix)
torch.svd_lowrank(matrix, q=8)
torch.fft.fft2(matrix)
torch.stft(torch.randn(4, 16000, device="cuda"), 400, window=torch.hann_window(400, device="cuda"), return_complex=True)
torch.sparse.mm(matrix.to_sparse_csr(), matrix)

# As optimizers do that precondition by both sides of a gradient.
weight = torch.nn.Parameter(torch.empty(512, 256, device="cuda"))
torch.nn.init.orthogonal_(weight)
left, right = torch.eye(512, device="cuda"), torch.eye(256, device="cuda")
optimizer = torch.optim.SGD([weight])
for step in range(3):
    (weight @ torch.randn(256, 32, device="cuda")).square().mean().backward()
    left = linalg.qr((weight.grad @ weight.grad.T) @ left)[0]
    right = linalg.eigh(weight.grad.T @ weight.grad)[1]
    weight.grad = left @ weight.grad @ right
    optimizer.step()
    optimizer.zero_grad()
print("factorized")
