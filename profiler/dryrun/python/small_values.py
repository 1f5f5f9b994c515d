# Small tensors whose values the host knows are computed on the host, too: what ranks tell each other, and decide by,
# is made of such. Every function of PyTorch runs as ever; then what it made gets its values.
import contextlib
import ctypes
import functools
import os
import sys
import threading
import weakref

MOST_ELEMENTS, MOST_BYTES = 1 << 16, 1 << 20
MOST_ELEMENTS_ROUTED, MOST_BYTES_ROUTED = 1 << 22, 1 << 25  # where tokens have experts: masks of them
UNKNOWN, KNOWN, OF_OTHERS = 0, 1, 2

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
floor_divide_ remainder_ floor_ ceil_ round_ exp_ log_ clamp_min clamp_max clamp_min_ clamp_max_""".split()
IN_PLACE = ("__setitem__", "__iand__", "__ior__", "__iadd__", "__isub__", "__imul__", "__itruediv__")
numbers = None
FUNCTIONS = """ones zeros full arange ones_like zeros_like full_like scalar_tensor cat concat concatenate stack vstack
hstack sum mean max min prod any all eq ne lt le gt ge equal allclose where add sub mul div floor_divide remainder
maximum minimum clamp argmax argmin cumsum diff sort unique bincount nonzero logical_and logical_or logical_not isnan isfinite
abs sqrt count_nonzero masked_select topk amax amin argsort argwhere scatter gather repeat_interleave histc
unique_consecutive scatter_add index_add clamp_min clamp_max isin isinf multinomial""".split()
# What one operand decides whatever the other is: all true, or all zeros. By these loops end whose other conditions look at
# tokens that no kernel drew.
DECIDED_BY = {"__or__": True, "logical_or": True, "bitwise_or": True, "__ior__": True,
              "__and__": False, "logical_and": False, "bitwise_and": False, "__iand__": False}
# What nobody computed is finite, as it would be in a run that goes well.
OF_FINITE = {"isfinite": True, "isnan": False, "isinf": False}
# Over as many numbers it is a vocabulary that is drawn from, not experts or classes.
SMALLEST_VOCABULARY = 256
# Of what these get only the shape matters.
EACH = "_shardscope_each"  # of a tensor too long to keep its values: what each of them is
LIKE = {"zeros_like": 0, "new_zeros": 0, "ones_like": 1, "new_ones": 1}
# As many elements come out of these as the host knows of a mask, or of numbers of repeats.
COUNTED = {"nonzero", "argwhere", "where", "masked_select", "__getitem__", "__setitem__", "repeat_interleave"}


class Numbers:
    def __init__(self, torch, alone):
        self.torch, self.alone, self.reader = torch, alone, None
        self.routing = sys.modules["shardscope_routing"]
        self.most_elements, self.most_bytes, self.experts = MOST_ELEMENTS, MOST_BYTES, set()
        self.mine = threading.local()  # backward runs in threads of its own
        self.kinds = (torch.Tensor, torch.nn.Parameter)
        self.concerned = {"topk": self.chooses, "multinomial": self.looks_at_many, "argmax": self.looks_at_many,
                          "all": self.sums_up, **dict.fromkeys(OF_FINITE, self.looks_at_many)}
        self.empty = torch.empty  # zero.Init replaces PyTorch's
        library = ctypes.CDLL(None)
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        self.state, self.copy, self.derive = (library.shardscope_standin_state, library.shardscope_standin_copy,
                                               library.shardscope_standin_derive)
        self.state.argtypes, self.state.restype = [pointer, size], ctypes.c_int
        self.forget = library.shardscope_standin_forget
        self.forget.argtypes, self.forget.restype = [pointer, size], None
        self.expect = library.shardscope_standin_expect
        self.expect.argtypes, self.expect.restype = [ctypes.c_longlong], None
        self.only_read = library.shardscope_standin_only_read
        self.only_read.argtypes, self.only_read.restype = [pointer, size], None
        self.if_equal = library.shardscope_standin_if_equal
        self.if_equal.argtypes, self.if_equal.restype = [pointer, pointer, size], ctypes.c_int
        self.copy.argtypes, self.copy.restype = [pointer, pointer, size], None
        self.derive.argtypes, self.derive.restype = [pointer, pointer, size, ctypes.c_char_p], None

    @contextlib.contextmanager
    def unwrapped(self):
        """What runs within is this module's own: nothing is computed of it again."""
        before, self.mine.busy = getattr(self.mine, "busy", False), True
        try:
            yield
        finally:
            self.mine.busy = before

    def is_small(self, value):
        count = value.numel()
        # Of longer ones those that are of experts: masks and numbers, and floats in as many columns as there are experts.
        fits = count <= MOST_ELEMENTS or (count <= self.most_elements and
                                          (not value.is_floating_point() or value.shape[-1] in self.experts))
        return fits and value.layout == self.torch.strided

    def extent_of(self, value):
        """Elements from a tensor's first to its last, gaps included."""
        return 0 if value.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride()))

    def piece_of(self, value):
        """Where a tensor lies: address, bytes and the offset of its first element in them. A part of a longer tensor is
        read with all of that: of a number in the midst of memory nobody knows whether it is still what it was."""
        size = value.element_size()
        own = self.extent_of(value) * size
        whole = value.untyped_storage()
        bytes_of = whole.nbytes() // size * size
        if own == 0 or self.state(value.data_ptr(), own) != UNKNOWN or bytes_of > self.most_bytes:
            return value.data_ptr(), own, 0
        return whole.data_ptr(), bytes_of, value.storage_offset()

    def state_of(self, value):
        """Of a tensor on a GPU."""
        if not self.is_small(value):
            return UNKNOWN
        address, bytes_of, _ = self.piece_of(value)
        if bytes_of > self.most_bytes:
            return UNKNOWN
        return KNOWN if bytes_of == 0 else self.state(address, bytes_of)

    def copy_of(self, value, states, seen):
        """On the host, with the same strides. Where nobody knows what equal ranks would have sent, states say so."""
        address, bytes_of, offset = self.piece_of(value)
        place = self.empty(bytes_of // value.element_size(), dtype=value.dtype, device="cpu")
        if bytes_of > 0:
            state, known = self.state(address, bytes_of), True
            if self.alone:
                known = bool(self.if_equal(place.data_ptr(), address, bytes_of))
            else:
                self.copy(place.data_ptr(), address, bytes_of)
            if not known:
                states.append(UNKNOWN)
            seen.append((address, bytes_of, place.clone(), known, state == OF_OTHERS))
        return place.as_strided(value.shape, value.stride(), offset)

    def restore(self, seen, written):
        """Which of its arguments a kernel writes to is a guess (standin/launch.cpp): inputs keep their values, but for
        those that the piece `written` has a part of."""
        for address, bytes_of, place, known, of_others in seen:
            touches = written is not None and address < written[0] + written[1] and written[0] < address + bytes_of
            if touches or self.state(address, bytes_of) != UNKNOWN:
                continue
            if self.alone and of_others:
                self.derive(address, place.data_ptr() if known else None, bytes_of, b"what other ranks send")
            else:
                self.copy(address, place.data_ptr(), bytes_of)

    def on_host(self, value, states, seen):
        """The value with its tensors on the host; raises LookupError at one that is not known."""
        if type(value) in self.kinds:
            if not value.is_cuda:
                if not self.is_small(value):
                    raise LookupError
                return value.detach().clone()
            state = self.state_of(value)
            if state == UNKNOWN:
                raise LookupError
            states.append(state)
            return self.copy_of(value, states, seen)
        if isinstance(value, self.torch.Tensor):
            raise LookupError  # of a kind of its own
        if type(value) in (list, tuple):
            return type(value)(self.on_host(each, states, seen) for each in value)
        if isinstance(value, self.torch.device):
            return self.torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str) and value.startswith("cuda"):
            return "cpu"
        return value

    def set(self, made, values, states):
        """What was made gets its values."""
        if type(made) in (list, tuple) or (isinstance(made, tuple) and hasattr(made, "_fields")):
            for each, value in zip(made, values if values is not None else [None] * len(made)):
                self.set(each, value, states)
            return
        if type(made) not in self.kinds or not made.is_cuda or not self.is_small(made):
            return
        bytes_of = self.extent_of(made) * made.element_size()
        fits = (type(values) in self.kinds and values.dtype == made.dtype and values.shape == made.shape and
                self.extent_of(made) == made.numel())
        host = None
        if fits:
            host = self.empty(made.numel(), dtype=made.dtype, device="cpu")
            host.as_strided(made.shape, made.stride()).copy_(values.detach())
        if bytes_of == 0:
            return
        if self.alone and OF_OTHERS in states:
            known = host is not None and UNKNOWN not in states
            self.derive(made.data_ptr(), host.data_ptr() if known else None, bytes_of,
                        b"what is computed of that which other ranks send")
        elif host is not None:
            self.copy(made.data_ptr(), host.data_ptr(), bytes_of)
        else:
            self.forget(made.data_ptr(), bytes_of)
        if host is not None and self.experts and not made.is_floating_point():
            # Which argument a kernel writes to is a guess; of masks and counts it is wrong while they live.
            self.only_read(made.data_ptr(), bytes_of)
            weakref.finalize(made, self.only_read, made.data_ptr(), 0).atexit = False

    def concerns_a_gpu(self, arguments, more):
        """Whether a small tensor there is among what a function gets, or may be made: most calls are none of ours."""
        tensors = 0
        for value in arguments:
            for each in value if type(value) in (list, tuple) else (value,):
                if type(each) in self.kinds:
                    tensors += 1
                    if each.is_cuda:
                        return self.is_small(each)
        return tensors == 0 or "device" in more

    def chooses(self, arguments, more):
        """The same of topk: the numbers that tokens choose experts by may be many before it is known that they are."""
        values = arguments[0] if arguments else more.get("input")
        return type(values) in self.kinds and values.is_cuda and (
            self.is_small(values) or self.routing.is_routing(values, *self.dim_and_number(arguments, more)))

    def looks_at_many(self, arguments, more):
        """The same where what is looked at may be long: a vocabulary of which a token is drawn, numbers that may be infinite."""
        values = arguments[0] if arguments else more.get("input")
        return type(values) in self.kinds and values.is_cuda

    def sums_up(self, arguments, more):
        """The same of all(): that so many numbers are finite is known of them together."""
        return self.concerns_a_gpu(arguments, more) or bool(arguments) and hasattr(arguments[0], EACH)

    def wrap(self, function, in_place):
        torch = self.torch
        compiling = torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False
        # Within vmap and its like tensors stand for others, and have no memory of their own.
        transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)

        @functools.wraps(function)
        def wrapped(*arguments, **more):
            concerns = self.concerned.get(function.__name__, self.concerns_a_gpu)
            if (compiling() or getattr(self.mine, "busy", False) or not concerns(arguments, more) or
                    transform() is not None):
                return function(*arguments, **more)
            return self.call(function, in_place, arguments, more)

        return wrapped

    def is_part(self, made, arguments):
        """A tensor that is another's memory has its values already."""
        first = arguments[0] if arguments else None
        return (type(made) in self.kinds and type(first) in self.kinds and
                made.untyped_storage().data_ptr() == first.untyped_storage().data_ptr())

    def call(self, function, in_place, arguments, more):
        if function.__name__ in LIKE:
            made = function(*arguments, **more)
            if type(made) in self.kinds and made.is_cuda and self.is_small(made):
                self.set_all(made, LIKE[function.__name__])
            return made
        if function.__name__ == "all" and arguments and hasattr(arguments[0], EACH):
            made = function(*arguments, **more)
            self.assume_each(made, getattr(arguments[0], EACH), arguments[0])
            return made
        inputs, states, seen, written = None, [], [], None
        with self.unwrapped(), contextlib.suppress(LookupError, RuntimeError, NotImplementedError):
            if in_place and type(arguments[0]) in self.kinds and arguments[0].is_cuda and self.is_small(arguments[0]):
                written = arguments[0].data_ptr(), self.extent_of(arguments[0]) * arguments[0].element_size()
            inputs = (self.on_host(arguments, states, seen),
                      {name: self.on_host(each, states, seen) for name, each in more.items()})
        if written is not None and inputs is None:
            self.forget(*written)  # it becomes something that the host does not know, unless that is copied there
        name = function.__name__
        count = self.count_of(name, arguments) if name in COUNTED else None
        if count is not None and name == "__getitem__" and arguments[0].requires_grad:
            arguments = self.by_numbers(arguments[0], arguments[1], count)
            count = None
        with self.finding(count):
            made = function(*arguments, **more)
        if "out" not in more:
            self.restore(seen, written)
        if inputs is None:
            if name == "topk":
                self.route(arguments, more, made)
            elif name in OF_FINITE and "out" not in more:
                self.assume_each(made, OF_FINITE[name], arguments[0] if arguments else more["input"])
            elif name in ("multinomial", "argmax") and "out" not in more:
                self.draw(name, arguments, more, made)
            elif name in DECIDED_BY and "out" not in more:
                self.decide(made, arguments, DECIDED_BY[name])
            return made
        values = None
        # Where the host has no such function, or it is asked for nonsense, what was made is not known.
        with self.unwrapped(), contextlib.suppress(RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
            if not in_place and self.is_part(made, arguments):
                return made
            if states or self.is_made_on_gpu(made):
                # A default device is not the host's.
                with self.torch.no_grad(), self.torch._C.DisableTorchFunction():
                    values = self.computed(function, *inputs)
        self.set(arguments[0] if in_place else made, inputs[0][0] if in_place else values, states)
        if name == "topk" and (OF_OTHERS in states or UNKNOWN in states):
            self.route(arguments, more, made)
        return self.told(values, states) if type(made) is bool and values is not None else made

    def computed(self, function, arguments, more):
        """What a function makes of the host's tensors. Histograms of integers GPUs have alone."""
        if function.__name__ == "histc" and arguments and not arguments[0].is_floating_point():
            return function(arguments[0].double(), *arguments[1:], **more).to(arguments[0].dtype)
        return function(*arguments, **more)

    def is_of_others(self, value):
        return self.alone and type(value) in self.kinds and self.is_small(value) and self.state_of(value) == OF_OTHERS

    def assume_each(self, made, number, value):
        """What is made of a value that nobody computed is this number, each; of what other ranks send nobody says so."""
        if type(made) not in self.kinds or not made.is_cuda or self.is_of_others(value):
            return
        if self.is_small(made):
            self.set_all(made, int(number))
        else:
            setattr(made, EACH, number)

    def draw(self, name, arguments, more, made):
        """A token of probabilities that nobody computed is one from the middle of the vocabulary, where none is that ends a
        sequence: sequences run to their length, which is the most that they take."""
        values = arguments[0] if arguments else more["input"]
        dim = more.get("dim", arguments[1] if len(arguments) > 1 else None)
        count = values.shape[-1] if values.dim() > 0 else 0
        last = name == "multinomial" or dim in (-1, values.dim() - 1) and dim is not None
        if not last or count < SMALLEST_VOCABULARY or type(made) not in self.kinds or not self.is_small(made):
            return
        if self.is_of_others(values):
            return
        self.set_all(made, count // 2)
        self.routing.note_drawn(count // 2, count)

    def decide(self, made, arguments, absorbing):
        """Where an operand that the host knows decides alone: true of "or", zeros of "and"."""
        if type(made) not in self.kinds or not made.is_cuda or not self.is_small(made):
            return
        for each in arguments[:2]:
            states = []
            with self.unwrapped(), contextlib.suppress(LookupError, RuntimeError):
                value = self.on_host(each, states, []) if type(each) in self.kinds else None
                if value is None or self.alone and OF_OTHERS in states:
                    continue
                if bool(value.all() if absorbing else not value.any()) and (not absorbing or made.dtype == self.torch.bool):
                    self.set(made, self.torch.full(made.shape, int(absorbing), dtype=made.dtype, device="cpu"), states)
                    return

    def set_all(self, made, number):
        with self.unwrapped():
            self.set(made, self.torch.full(made.shape, number, dtype=made.dtype, device="cpu"), [])

    def known(self, value):
        """A small tensor's value, where nobody is asked; None where it is not known."""
        if type(value) not in self.kinds or not self.is_small(value):
            return None
        with self.unwrapped():
            try:
                return self.on_host(value, [], [])
            except (LookupError, RuntimeError):
                return None

    def count_of(self, name, arguments):
        """How many elements a function finds; None where that is not known or it finds none."""
        torch = self.torch
        if name == "where" and len(arguments) != 1:
            return None
        mask = arguments[0]
        if name in ("masked_select", "__getitem__", "__setitem__"):
            mask = arguments[1]
            if type(mask) is tuple:
                masks = [each for each in mask if type(each) in self.kinds and each.dtype == torch.bool]
                mask = masks[0] if len(masks) == 1 else None
            if type(mask) not in self.kinds or mask.dtype != torch.bool or not mask.is_cuda:
                return None
        elif name == "repeat_interleave":
            mask = next((each for each in arguments[1:] if type(each) in self.kinds), mask)
        value = self.known(mask)
        if value is None:
            return None
        with self.unwrapped():
            if name == "repeat_interleave":
                return None if value.is_floating_point() else int(value.sum())
            found = int(torch.count_nonzero(value))
            if name == "masked_select" and mask.numel() > 0:
                whole = torch.broadcast_shapes(arguments[0].shape, mask.shape).numel()
                return found * whole // mask.numel()
            return found

    @contextlib.contextmanager
    def finding(self, count):
        """Kernels that run within find so many elements; None: nobody knows."""
        if count is not None:
            self.expect(count)
        try:
            yield
        finally:
            if count is not None:
                self.expect(-1)

    def by_numbers(self, value, index, count):
        """A mask as the numbers that PyTorch makes of it, since its backward would count a mask again."""
        parts = []
        for each in index if type(index) is tuple else (index,):
            if type(each) in self.kinds and each.dtype == self.torch.bool:
                with self.unwrapped(), self.finding(count):
                    parts += each.nonzero(as_tuple=True)
            else:
                parts.append(each)
        return value, tuple(parts)

    def dim_and_number(self, arguments, more):
        """Along which dimension topk looks, and for how many."""
        return (more.get("dim", arguments[2] if len(arguments) > 2 else -1),
                more["k"] if "k" in more else arguments[1] if len(arguments) > 1 else 0)

    def route(self, arguments, more, made):
        """The largest of what nobody computed, of a row each: a token's experts, as routing.py assumes."""
        values = arguments[0] if arguments else more["input"]
        dim, each = self.dim_and_number(arguments, more)
        if self.routing.is_routing(values, dim, each):
            experts = values.shape[-1]
            self.assume(made[1], (values.numel() // experts, experts, each), lambda chosen: chosen.view(made[1].shape))

    def route_mask(self, mask, each):
        """The same of a mask of tokens and experts."""
        def of(chosen):
            return self.torch.zeros(mask.shape, dtype=self.torch.bool).scatter_(1, chosen, True)

        self.assume(mask, (*mask.shape, each), of)

    def assume(self, made, choice, of):
        """`made` gets what `of` makes of the experts of each token that are assumed; `choice`: tokens, experts, and how
        many of them each token gets."""
        tokens, experts, each = choice
        self.most_elements, self.most_bytes = MOST_ELEMENTS_ROUTED, MOST_BYTES_ROUTED
        self.experts.add(experts)
        with self.unwrapped():
            self.set(made, of(self.routing.chosen(self.torch, tokens, experts, each)).to(made.dtype), [])
        self.routing.note(self.torch, experts, each)

    def told(self, answer, states):
        """What the host has read at once: of absent ranks it is asked whether it may."""
        if self.reader is not None and OF_OTHERS in states:
            self.reader.refuse("what is computed of that which other ranks send")
        return answer

    def is_made_on_gpu(self, made):
        """Whether a function without inputs made a tensor there."""
        return type(made) in self.kinds and made.is_cuda and self.is_small(made)


def fused_router(module):
    """Transformer Engine's kernel that chooses experts makes a mask of tokens and experts."""
    original = getattr(module, "fused_topk_with_score_function", None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapped(logits, topk, *arguments, **more):
        probabilities, chosen = original(logits, topk, *arguments, **more)
        numbers.route_mask(chosen, topk)
        return probabilities, chosen

    module.fused_topk_with_score_function = wrapped


prepare_later = {"transformer_engine.pytorch.router": fused_router}


def not_a_sequence(kind):
    """CPython takes a class for a sequence where it has a __getitem__ of Python's; PyTorch then asks each element of a
    list for its length, which a tensor of no dimension refuses. sq_item of the type's tp_as_sequence goes."""
    if ctypes.pythonapi.PySequence_Check(ctypes.py_object(kind.__new__(kind))):
        sequence = ctypes.c_void_p.from_address(id(kind) + 13 * ctypes.sizeof(ctypes.c_void_p)).value
        ctypes.c_void_p.from_address(sequence + 3 * ctypes.sizeof(ctypes.c_void_p)).value = None


def prepare(torch):
    if not hasattr(torch, "Tensor"):
        return
    global numbers
    numbers = Numbers(torch, not os.environ.get("SHARDSCOPE_STANDIN_RANKS"))
    # Which functions `with torch.device(...)` concerns is remembered by their names' values of now: PyTorch's own.
    with contextlib.suppress(ImportError):
        from torch.utils._device import _device_constructors
        _device_constructors()
    for name in METHODS:
        function = getattr(torch.Tensor, name, None)
        if function is not None:
            in_place = name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))
            setattr(torch.Tensor, name, numbers.wrap(function, in_place))
    for kind in (torch.Tensor, torch.nn.Parameter):
        not_a_sequence(kind)
    builtins = getattr(torch.jit, "_builtins", None)  # what torch.jit.script knows functions by
    for module, name in [(torch.nn.functional, "one_hot"), *((torch, name) for name in FUNCTIONS)]:
        function = getattr(module, name, None)
        if function is None:
            continue
        wrapped = numbers.wrap(function, False)
        known_as = builtins and builtins._find_builtin(function)
        if known_as:
            builtins._register_builtin(wrapped, known_as)
        setattr(module, name, wrapped)
