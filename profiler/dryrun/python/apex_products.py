# apex's products for weights' gradients, where a recipe asks for them and apex is not installed: they add to a gradient
# that is there already, by one call of cuBLAS, and take nothing of the allocator.
import ctypes
import importlib.util
import sys
import types

NAME = "fused_weight_gradient_mlp_cuda"
TRANSPOSED, NOT_TRANSPOSED, COMPUTE_FLOAT, DEFAULT_ALGORITHM = 1, 0, 68, 99  # of cublas_api.h
TYPES = {"torch.float32": 0, "torch.float16": 2, "torch.bfloat16": 14}  # cudaDataType


def take_its_place(note):
    """`note` is called once, when such a product is asked for."""
    if importlib.util.find_spec(NAME) is not None:
        return
    noted = []

    def accumulate(values, gradient, weights_gradient):
        """Adds gradient^T values to the gradient of a weight of shape (outputs, inputs)."""
        import torch
        if not noted:
            noted.append(True)
            note()
        outputs, inputs = weights_gradient.shape
        rows, factor = values.numel() // inputs, ctypes.byref(ctypes.c_float(1))
        number, pointer = ctypes.c_int, ctypes.c_void_p
        of_values, of_gradient, result = (number(TYPES[str(each.dtype)]) for each in (values, gradient, weights_gradient))
        ctypes.CDLL(None).cublasGemmEx(
            pointer(torch.cuda.current_blas_handle()), number(NOT_TRANSPOSED), number(TRANSPOSED), number(inputs),
            number(outputs), number(rows), factor, pointer(values.data_ptr()), of_values, number(inputs),
            pointer(gradient.data_ptr()), of_gradient, number(outputs), factor, pointer(weights_gradient.data_ptr()),
            result, number(inputs), number(COMPUTE_FLOAT), number(DEFAULT_ALGORITHM))

    module = types.ModuleType(NAME)
    module.wgrad_gemm_accum_fp32 = module.wgrad_gemm_accum_fp16 = accumulate
    sys.modules[NAME] = module
