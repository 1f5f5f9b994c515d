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
UNKNOWN, KNOWN, OF_OTHERS = 0, 1, 2
followed = sys.modules["shardscope_followed"]

numbers = None


class Numbers:
    def __init__(self, torch, alone):
        self.torch, self.alone, self.reader = torch, alone, None
        self.most_elements, self.most_bytes, self.experts = MOST_ELEMENTS, MOST_BYTES, set()
        self.mine = threading.local()  # backward runs in threads of its own
        self.kinds = (torch.Tensor, torch.nn.Parameter)
        self.assumed = sys.modules["shardscope_assumptions"].Assumptions(self)
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

    def looks_by(self, arguments, more):
        """A mask or numbers of few elements may choose of a tensor of many."""
        return self.concerns_a_gpu(arguments, more) or any(
            type(each) in self.kinds and each.is_cuda and each.dtype == self.torch.bool and self.is_small(each)
            for value in arguments[1:2] for each in (value if type(value) is tuple else (value,)))

    def wrap(self, function, in_place):
        torch = self.torch
        compiling = torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False
        # Within vmap and its like tensors stand for others, and have no memory of their own.
        transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)

        @functools.wraps(function)
        def wrapped(*arguments, **more):
            concerns = self.assumed.concerned.get(function.__name__, self.concerns_a_gpu)
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

    def forget_all(self, made, arguments):
        """What is made of values that nobody knows: in its memory may be what was there before."""
        if isinstance(made, tuple):
            for each in made:
                self.forget_all(each, arguments)
        elif self.is_made_on_gpu(made) and not any(isinstance(each, self.torch.Tensor) and (
                type(each) not in self.kinds or self.is_part(made, (each,))) for each in arguments):
            self.forget(made.data_ptr(), self.extent_of(made) * made.element_size())

    def call(self, function, in_place, arguments, more):
        if function.__name__ in followed.LIKE:
            made = function(*arguments, **more)
            if self.is_made_on_gpu(made):
                self.set_all(made, followed.LIKE[function.__name__])
            return made
        if function.__name__ in followed.NEVER_KNOWN:
            made = function(*arguments, **more)
            self.forget_all(made, arguments)
            return made
        each = self.assumed.each_of(arguments[0]) if function.__name__ == "all" and arguments else None
        if each is not None:
            made = function(*arguments, **more)
            self.assumed.set_each(made, each, arguments[0])
            return made
        if function.__name__ == "any" and self.assumed.draws_again():
            return self.assumed.answer_any(function(*arguments, **more))
        if function.__name__ in followed.READ:
            arguments = self.as_read(function.__name__, arguments, more)
        seed = self.seed_of(more) if function.__name__ in followed.DRAWN else None
        inputs, states, seen, written = None, [], [], None
        with self.unwrapped(), contextlib.suppress(LookupError, RuntimeError, NotImplementedError):
            if in_place and type(arguments[0]) in self.kinds and arguments[0].is_cuda and self.is_small(arguments[0]):
                written = arguments[0].data_ptr(), self.extent_of(arguments[0]) * arguments[0].element_size()
            inputs = (self.on_host(arguments, states, seen),
                      {name: self.on_host(each, states, seen) for name, each in more.items()})
        if written is not None and inputs is None:
            self.forget(*written)  # it becomes something that the host does not know, unless that is copied there
        name = function.__name__
        count = self.count_of(function, arguments, more) if name in followed.COUNTED else None
        if count is not None and name == "__getitem__" and arguments[0].requires_grad:
            arguments = self.by_numbers(arguments[0], arguments[1], count)
            count = None
        if name == "bincount":
            arguments, more = self.with_bins(arguments, more)
        with self.finding(count):
            made = function(*arguments, **more)
        if "out" not in more:
            self.restore(seen, written)
        if inputs is None:
            self.forget_all(made, arguments)
            self.assumed.make(function, arguments, more, made)
            return made
        values = None
        # Where the host has no such function, or it is asked for nonsense, what was made is not known.
        with self.unwrapped(), contextlib.suppress(RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
            if not in_place and self.is_part(made, arguments):
                return made
            if states or self.is_made_on_gpu(made):
                # A default device is not the host's.
                with self.torch.no_grad(), self.torch._C.DisableTorchFunction():
                    values = self.computed(function, *inputs, seed)
        self.set(arguments[0] if in_place else made, inputs[0][0] if in_place else values, states)
        if name == "topk" and (OF_OTHERS in states or UNKNOWN in states):
            self.assumed.route(arguments, more, made)
        return self.told(values, states) if type(made) is bool and values is not None else made

    def computed(self, function, arguments, more, seed):
        """What a function makes of the host's tensors. Histograms of integers GPUs have alone."""
        if function.__name__ == "histc" and arguments and not arguments[0].is_floating_point():
            return function(arguments[0].double(), *arguments[1:], **more).to(arguments[0].dtype)
        if seed is None:
            return function(*arguments, **more)
        generator = self.torch.default_generator  # the program's own: it goes on as if nothing had been drawn
        before = generator.get_state()
        try:
            generator.manual_seed(seed)
            return function(*arguments, **{name: each for name, each in more.items() if name != "generator"})
        finally:
            generator.set_state(before)

    def seed_of(self, more):
        """By where the GPU's generator stands."""
        torch = self.torch
        try:
            generator = more.get("generator") or torch.cuda.default_generators[torch.cuda.current_device()]
            return (generator.initial_seed() * 1000003 + generator.get_offset()) & ((1 << 63) - 1)
        except (RuntimeError, IndexError, AttributeError):  # of the host, before there is one, in a graph
            return 0

    def as_read(self, name, arguments, more):
        """What the host reads of a tensor with gaps, or in another type, PyTorch first makes dense and of that type on the
        GPU, by kernels: by functions that are computed on the host, too."""
        torch, source = self.torch, arguments[1 if name == "copy_" and len(arguments) > 1 else 0]
        if type(source) not in self.kinds or not source.is_cuda or not self.is_small(source):
            return arguments
        kind = source.dtype
        if name == "copy_":
            if len(arguments) < 2 or type(arguments[0]) not in self.kinds or arguments[0].is_cuda:
                return arguments
            kind = arguments[0].dtype
        elif name == "to":
            given = [*arguments[1:], *more.values()]
            if not any(each == "cpu" or isinstance(each, torch.device) and each.type == "cpu" or
                       type(each) in self.kinds and not each.is_cuda for each in given):
                return arguments
            kind = next((each if isinstance(each, torch.dtype) else each.dtype for each in given
                         if isinstance(each, torch.dtype) or type(each) in self.kinds), kind)
        if kind != source.dtype:
            source = source.to(kind)
        if self.extent_of(source) != source.numel():
            source = source.contiguous()
        return (arguments[0], source, *arguments[2:]) if name == "copy_" else (source, *arguments[1:])

    def is_of_others(self, value):
        return self.alone and type(value) in self.kinds and self.is_small(value) and self.state_of(value) == OF_OTHERS

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

    def count_of(self, function, arguments, more):
        """How many elements a function finds; None where that is not known or it finds none."""
        torch, name = self.torch, function.__name__
        if name in ("unique", "unique_consecutive"):
            return self.count_of_different(function, arguments, more)
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

    def with_bins(self, arguments, more):
        """Of how many bins there are PyTorch asks the GPU, unless as many are asked for."""
        value = self.known(arguments[0]) if arguments else None
        if value is None or value.numel() == 0:
            return arguments, more
        given = arguments[2] if len(arguments) > 2 else more.get("minlength", 0)
        return arguments[:2], {**more, "minlength": max(given, int(value.max()) + 1)}

    def count_of_different(self, function, arguments, more):
        value = self.known(arguments[0]) if arguments else None
        if value is None or value.numel() == 0 or not arguments[0].is_cuda:
            return None
        with self.unwrapped(), contextlib.suppress(RuntimeError, NotImplementedError):
            found = function(value, *arguments[1:], **more)
            return (found[0] if type(found) is tuple else found).shape[more.get("dim") or 0]

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

    def told(self, answer, states):
        """What the host has read at once: of absent ranks it is asked whether it may."""
        if self.reader is not None and OF_OTHERS in states:
            self.reader.refuse("what is computed of that which other ranks send")
        return answer

    def take_over_compiled(self, heuristics):
        """What kernels of torch.compile write to they name, and nobody knows it."""
        tuner = getattr(heuristics, "CachingAutotuner", None)
        run = getattr(tuner, "run", None)
        if run is None:
            return

        @functools.wraps(run)
        def wrapped(kernel, *arguments, **more):
            result = run(kernel, *arguments, **more)
            for name, value in zip(kernel.fn.arg_names, arguments):
                if name.startswith(("out_ptr", "in_out_ptr")):
                    self.forget_all(value, ())
            return result

        tuner.run = wrapped

    def is_made_on_gpu(self, made):
        """Whether what a function made is a small tensor there."""
        return type(made) in self.kinds and made.is_cuda and self.is_small(made)


prepare_later = {"transformer_engine.pytorch.router": lambda module: numbers.assumed.take_over_fused_router(module)}


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
    for name in (*followed.METHODS, *followed.NEVER_KNOWN):
        function = getattr(torch.Tensor, name, None)
        if function is not None:
            in_place = name in followed.IN_PLACE or (name.endswith("_") and not name.endswith("__"))
            setattr(torch.Tensor, name, numbers.wrap(function, in_place))
    numbers.assumed.take_over_bounds(torch.nn.init)
    numbers.assumed.take_over_descent(torch.optim.LBFGS)
    for kind in (torch.Tensor, torch.nn.Parameter):
        not_a_sequence(kind)
    builtins = getattr(torch.jit, "_builtins", None)  # what torch.jit.script knows functions by
    of_torch = ((torch, name) for name in (*followed.FUNCTIONS, *followed.NEVER_KNOWN))
    for module, name in [(torch.nn.functional, "one_hot"), (torch._C._nn, "pad"), *of_torch]:
        function = getattr(module, name, None)
        if function is None:
            continue
        wrapped = numbers.wrap(function, False)
        known_as = builtins and builtins._find_builtin(function)
        if known_as:
            builtins._register_builtin(wrapped, known_as)
        setattr(module, name, wrapped)
