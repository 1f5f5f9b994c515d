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


class Lazy(types.ModuleType):
    """A module whose members are made when they are asked for: PyTorch is not loaded yet."""
    stands_in = True  # sitecustomize.py

    def __init__(self, name, **members):
        super().__init__(name)
        self.__path__, self.made_by = [], members
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = self

    def __getattr__(self, name):
        made_by = self.__dict__.get("made_by", {})
        if name not in made_by:
            raise AttributeError(name)
        setattr(self, name, made_by[name]())
        return self.__dict__[name]


def take_their_place(note):
    """`note` is called with what ran, once each."""
    noted = set()

    def runs(what):
        if what not in noted:
            noted.add(what)
            note(what)

    if importlib.util.find_spec("fused_weight_gradient_mlp_cuda") is None:
        add = weight_gradient(lambda: runs("apex's fused weight gradients"))
        Lazy("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=lambda: add, wgrad_gemm_accum_fp16=lambda: add)
    for name in SOFTMAXES:
        if importlib.util.find_spec(name) is None:
            functions = softmax(lambda name=name: runs(f"apex's {name}"))
            Lazy(name, **{each.__name__: lambda each=each: each for each in functions})
    if importlib.util.find_spec("apex") is None:
        for name in ("apex", "apex.contrib", "apex.contrib.layer_norm", "apex.normalization"):
            Lazy(name)
        Lazy("apex.normalization.fused_layer_norm",
             FusedLayerNormAffineFunction=lambda: fused_layer_norm(lambda: runs("apex's FusedLayerNorm")))
        Lazy("apex.contrib.layer_norm.layer_norm",
             FastLayerNormFN=lambda: fast_layer_norm(lambda: runs("apex's FastLayerNorm")))


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

    return forward, backward, get_batch_per_block


def statistics_of(torch, values, rows):
    """A mean and an inverse deviation of each row."""
    kind = torch.float32 if values.dtype in (torch.float16, torch.bfloat16) else values.dtype
    return [torch.empty(rows, dtype=kind, device=values.device) for _ in range(2)]


def gradients_of(torch, values, weight, bias, parts):
    """Of a normalisation's input, weight and bias; partial sums of the last two are gone at its end."""
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
            values = input.contiguous()
            made = torch.empty_like(values)
            mean, inverse = statistics_of(torch, values, values.numel() // weight.numel())
            ctx.save_for_backward(made if memory_efficient else values, weight, bias,
                                  None if memory_efficient else mean, inverse)
            return made

        @staticmethod
        def backward(ctx, gradient):
            gradient = gradient.contiguous()
            kept, weight, bias, _, _ = ctx.saved_tensors
            return *gradients_of(torch, kept, weight, bias, PARTS_OF_GRADIENTS), None, None, None

    return FusedLayerNormAffineFunction


def fast_layer_norm(runs):
    import torch

    class FastLayerNormFN(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta, epsilon, memory_efficient=False):
            runs()
            x = x.contiguous()
            made = torch.empty_like(x.view(-1, gamma.numel()))
            mean, inverse = (torch.empty(made.shape[0], dtype=torch.float32, device=x.device) for _ in range(2))
            ctx.is_of_output = memory_efficient
            ctx.save_for_backward(*((made, gamma, None, inverse, beta) if memory_efficient else
                                    (x, gamma, mean, inverse, None)))
            return made.view(x.shape)

        @staticmethod
        def backward(ctx, gradient):
            gradient = gradient.contiguous()
            kept, weight, _, _, _ = ctx.saved_tensors
            of_a_wave = torch.cuda.get_device_properties(weight.device).multi_processor_count
            made, *of_weights = gradients_of(torch, kept, weight, weight, of_a_wave)
            return made.view(gradient.shape), *of_weights, None, None

    return FastLayerNormFN
