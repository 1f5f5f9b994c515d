# Parts of apex that Megatron's configurations ask for, where apex is not installed, since PyPI does not have it: of the
# same names, and taking of the allocator what apex's take (csrc/layer_norm_cuda*, contrib/csrc/layer_norm/ln_api.cpp,
# csrc/megatron/fused_weight_gradient_dense*, csrc/megatron/scaled_*softmax*); each that runs is named in the answer.
import ctypes
import importlib.machinery
import importlib.util
import sys
import types

TRANSPOSED, NOT_TRANSPOSED, COMPUTE_FLOAT, DEFAULT_ALGORITHM = 1, 0, 68, 99  # of cublas_api.h
TYPES = {"torch.float32": 0, "torch.float16": 2, "torch.bfloat16": 14}  # cudaDataType
SOFTMAXES = ("scaled_softmax_cuda", "scaled_masked_softmax_cuda", "scaled_upper_triang_masked_softmax_cuda")
PARTS_OF_GRADIENTS = 16  # sums of rows that a normalisation's backward adds up at its end


class StandIn(types.ModuleType):
    """A module with these members, and those that `later` makes when they are asked for: PyTorch is not loaded yet."""
    stands_in = True  # sitecustomize.py

    def __init__(self, name, later=None, **members):
        super().__init__(name)
        vars(self).update(members, __path__=[], later=later or {},
                          __spec__=importlib.machinery.ModuleSpec(name, None, is_package=True))
        sys.modules[name] = self

    def __getattr__(self, name):
        if name not in self.later:
            raise AttributeError(name)
        made = vars(self)[name] = self.later[name]()
        return made


def take_their_place(note):
    """`note` is called with what ran, once each."""
    noted = set()

    def runs(what):
        if what not in noted:
            noted.add(what)
            note(what)

    def is_absent(name):
        return importlib.util.find_spec(name) is None

    if is_absent("fused_weight_gradient_mlp_cuda"):
        add = weight_gradient(lambda: runs("apex's fused weight gradients"))
        StandIn("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=add, wgrad_gemm_accum_fp16=add)
    for name in filter(is_absent, SOFTMAXES):
        StandIn(name, **softmax(lambda name=name: runs(f"apex's {name}")))
    if is_absent("apex"):
        for name in ("apex", "apex.contrib", "apex.contrib.layer_norm", "apex.normalization"):
            StandIn(name)
        StandIn("apex.normalization.fused_layer_norm",
                {"FusedLayerNormAffineFunction": lambda: fused_layer_norm(lambda: runs("apex's FusedLayerNorm"))})
        StandIn("apex.contrib.layer_norm.layer_norm",
                {"FastLayerNormFN": lambda: fast_layer_norm(lambda: runs("apex's FastLayerNorm"))})


def weight_gradient(runs):
    """One call of cuBLAS."""
    number, pointer = ctypes.c_int, ctypes.c_void_p

    def accumulate(values, gradient, weights_gradient):
        """Adds gradient^T values to the gradient of a weight of shape (outputs, inputs)."""
        import torch
        runs()
        outputs, inputs = weights_gradient.shape
        rows, factor = values.numel() // inputs, ctypes.byref(ctypes.c_float(1))
        of_values, of_gradient, result = (number(TYPES[str(each.dtype)]) for each in (values, gradient, weights_gradient))
        ctypes.CDLL(None).cublasGemmEx(
            pointer(torch.cuda.current_blas_handle()), number(NOT_TRANSPOSED), number(TRANSPOSED), number(inputs),
            number(outputs), number(rows), factor, pointer(values.data_ptr()), of_values, number(inputs),
            pointer(gradient.data_ptr()), of_gradient, number(outputs), factor, pointer(weights_gradient.data_ptr()),
            result, number(inputs), number(COMPUTE_FLOAT), number(DEFAULT_ALGORITHM))

    return accumulate


def softmax(runs):
    """Of scores of shape (batch, heads, queries, keys), or (batch and heads, queries, keys)."""
    def forward(scores, *mask_and_scale):
        import torch
        runs()
        return torch.empty_like(scores, memory_format=torch.contiguous_format)

    def backward(gradient, results, scale):
        return gradient if gradient.is_contiguous() else gradient.contiguous()  # in place

    def get_batch_per_block(queries, keys, batch, heads):
        """How many rows a block of 128 threads has: by warps, which have two where a row is short."""
        width = 1 << max(keys - 1, 0).bit_length()
        return 128 // min(width, 32) * (2 if width <= 128 else 1)

    return {"forward": forward, "backward": backward, "get_batch_per_block": get_batch_per_block}


def statistics_of(torch, values, rows):
    """A mean and an inverse deviation of each row."""
    kind = torch.float32 if values.dtype in (torch.float16, torch.bfloat16) else values.dtype
    return [torch.empty(rows, dtype=kind, device=values.device) for _ in range(2)]


def normalised(torch, ctx, values, weight, bias, by_output):
    """Rows as long as the weight. For backward the input is kept, or the output, which needs no mean."""
    made = torch.empty_like(values)
    mean, inverse = statistics_of(torch, values, values.numel() // weight.numel())
    ctx.save_for_backward(made if by_output else values, weight, bias, None if by_output else mean, inverse)
    return made


def gradients_of(torch, ctx, parts):
    """Of a normalisation's input, weight and bias; partial sums of the last two are gone at its end."""
    values, weight, bias, _, _ = ctx.saved_tensors
    made = torch.empty_like(values), torch.empty_like(weight), torch.empty_like(bias)
    sums = [torch.empty(parts, weight.numel(), dtype=torch.float32, device=weight.device) for _ in range(2)]
    del sums
    return made


def fused_layer_norm(runs):
    import torch

    class FusedLayerNormAffineFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight, bias, normalized_shape, eps, memory_efficient=False):
            runs()
            return normalised(torch, ctx, input.contiguous(), weight, bias, memory_efficient)

        @staticmethod
        def backward(ctx, gradient):
            gradient = gradient.contiguous()  # kept meanwhile
            return *gradients_of(torch, ctx, PARTS_OF_GRADIENTS), None, None, None

    return FusedLayerNormAffineFunction


def fast_layer_norm(runs):
    import torch

    class FastLayerNormFN(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta, epsilon, memory_efficient=False):
            runs()
            rows = x.contiguous().view(-1, gamma.numel())
            return normalised(torch, ctx, rows, gamma, beta, memory_efficient).view(x.shape)

        @staticmethod
        def backward(ctx, gradient):
            gradient = gradient.contiguous()  # kept meanwhile
            of_a_wave = torch.cuda.get_device_properties(gradient.device).multi_processor_count
            of_rows, *of_weights = gradients_of(torch, ctx, of_a_wave)
            return of_rows.view(gradient.shape), *of_weights, None, None

    return FastLayerNormFN
