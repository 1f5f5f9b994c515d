# What no kernel computed is finite, and read so where a program looks at it: few numbers, many, and what a mask of them finds.
#
# says: finite True True True, found 64 and 0, least 0.0
import torch

few, many = torch.randn(64, device="cuda"), torch.randn(1 << 20, device="cuda")
found = few[~torch.isnan(few)]
print("finite", bool(torch.isfinite(few).all()), bool(torch.isfinite(many).all()), not many.isinf().any().item(),
      end=", ")
print("found", len(found), "and", len(few[few.isinf()]), end=", ")
print("least", torch.min(found).item())
