# By which functions of PyTorch small values go on, and what each of them does to them (small_values.py).
# Of tensors.
METHODS = """__iand__ __ior__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__
__itruediv__ __floordiv__ __rfloordiv__ __mod__ __pow__ __neg__ __invert__ __and__ __or__ __xor__ __eq__ __ne__ __lt__
__le__ __gt__ __ge__ __setitem__ __getitem__ add add_ sub sub_ mul mul_ div div_ fill_ zero_ copy_ sum mean max min amax
amin prod any all argmax argmin eq ne lt le gt ge clamp clamp_ abs neg sqrt floor ceil round long int float double bool
half bfloat16 to type cumsum diff sort unique nonzero repeat clone contiguous masked_fill masked_fill_ masked_select
logical_and logical_or logical_not bitwise_and bitwise_or equal isnan isfinite new_zeros new_ones new_full new_tensor
index_select gather scatter scatter_ count_nonzero bincount topk norm argsort argwhere reshape flatten expand_as
repeat_interleave unique_consecutive histc index_put index_put_ index_add index_add_ index_copy_ index_fill_ scatter_add
scatter_add_ scatter_reduce scatter_reduce_ put_ masked_scatter_ masked_scatter multinomial isinf addcmul_ addcdiv_ lerp_ neg_ abs_ pow_
sqrt_ cumsum_ eq_ ne_ lt_ le_ gt_ ge_ logical_and_ logical_or_ logical_not_ bitwise_and_ bitwise_or_ bitwise_xor_
cpu tolist bernoulli bernoulli_ random_ uniform_ floor_divide_ remainder_ floor_ ceil_ round_ exp_ log_ clamp_min clamp_max
clamp_min_ clamp_max_""".split()
IN_PLACE = ("__setitem__", "__iand__", "__ior__", "__iadd__", "__isub__", "__imul__", "__itruediv__")
# Of torch.
FUNCTIONS = """ones zeros full arange ones_like zeros_like full_like scalar_tensor cat concat concatenate stack vstack
hstack sum mean max min prod any all eq ne lt le gt ge equal allclose where add sub mul div floor_divide remainder
maximum minimum clamp argmax argmin cumsum diff sort unique bincount nonzero logical_and logical_or logical_not isnan isfinite
abs sqrt count_nonzero masked_select topk amax amin argsort argwhere scatter gather repeat_interleave histc
unique_consecutive scatter_add index_add clamp_min clamp_max isin isinf multinomial rand rand_like randint randint_like
randperm bernoulli""".split()
# Whose results the host does not compute; in their memory may be values of what was there before.
NEVER_KNOWN = """empty empty_like new_empty randn randn_like exp log sigmoid tanh softmax log_softmax rsqrt reciprocal relu
logsumexp""".split()
# Of what these get only the shape matters.
LIKE = {"zeros_like": 0, "new_zeros": 0, "ones_like": 1, "new_ones": 1}
# What these draw depends on the GPU's generator alone, so that what is computed again for backward is the same.
DRAWN = ("rand", "rand_like", "randint", "randint_like", "randperm", "bernoulli", "bernoulli_", "random_", "uniform_",
         "multinomial")
# By which the host reads.
READ = ("cpu", "to", "tolist", "copy_")
# As many elements come out of these as the host knows of a mask, or of numbers of repeats.
COUNTED = {"nonzero", "argwhere", "where", "masked_select", "__getitem__", "__setitem__", "repeat_interleave", "unique",
           "unique_consecutive"}
