# One rank of several, whose others do not run: what they would send is what this rank has, where a library asks for it,
# and an error where the program's own code decides by it, since nobody here knows it.
import atexit
import ctypes
import functools
import inspect
import json
import os
import sys
import sysconfig
import types

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
ASSUME_ZEROS = os.environ.get("SHARDSCOPE_DRYRUN_ASSUME_ZEROS") == "1"
TAKE_RULE, ZEROS, END = 1, 0, 2


class Reader:
    """Who looks at what absent ranks would have sent."""

    def __init__(self, torch):
        self.torch = os.path.dirname(torch.__file__) + os.sep
        # A recipe's framework that runs from a folder of its own: the recipe sees to it that this rank does what a root
        # would do.
        self.framework = tuple(filter(None, [os.environ.get("SHARDSCOPE_DRYRUN_LIBRARY")]))
        # What one rank has, the others have only where a library checks that they do.
        lightning = ("/site-packages/lightning/", "/site-packages/pytorch_lightning/", "/site-packages/lightning_fabric/")
        # Lightning broadcasts paths and flags that each of its ranks has made itself before.
        self.checks = (self.torch, "/deepspeed/runtime/zero/utils.py", *lightning, *self.framework)
        # Methods that hand on what their caller, maybe the program, has: by folder and name.
        self.handing_on = (lightning, "broadcast")
        # What methods of tensors, of their subclasses too, are made of: whoever called them looks.
        self.tensors = tuple(self.torch + name for name in (
            "_tensor.py", "_tensor_str.py", "overrides.py", "_ops.py", "_compile.py", "utils/_python_dispatch.py",
            "_dynamo/eval_frame.py", "distributed/_functional_collectives.py", "distributed/tensor/"))
        # What collectives are made of: of tensors of the host it is their caller who looks.
        self.collectives = tuple(self.torch + "distributed/" + name for name in ("distributed_c10d.py", "c10d_logger.py"))
        self.libraries = tuple(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib"))
        self.noted = set()

    def line(self, more=()):
        """The innermost frame that is neither this module's nor what a tensor's methods are made of, nor one of `more`."""
        frame, skipped = sys._getframe(1), (*self.tensors, *more, "<frozen")
        folders, method = self.handing_on
        while frame is not None:
            name = frame.f_code.co_filename
            hands_on = frame.f_code.co_name == method and any(each in name for each in folders)
            if not name.startswith(skipped) and not hands_on:
                return name, frame.f_lineno
            frame = frame.f_back
        return "", 0

    def is_own(self, name):
        """Whether a file is the program's, and no library's."""
        return bool(name) and not (name.startswith((self.torch, *self.libraries, *self.framework)) or
                                   "/site-packages/" in name or "/dist-packages/" in name)

    def note(self, what, name, line, answer):
        """For the report: once each."""
        if (what, name, line, answer) not in self.noted:
            self.noted.add((what, name, line, answer))
            with open(os.path.join(FOLDER, "absent"), "a") as file:
                file.write(json.dumps({"what": what, "file": name, "line": line, "answer": answer}) + "\n")

    def decide(self, what, has_rule, more=(), has_own=True):
        name, line = self.line(more)
        of_root = what.startswith(("a broadcast", "a scatter", "what rank"))
        # An object that a rank sends to another is no check: a pipeline's stage is told its shapes so.
        checked = has_own and any(each in name for each in self.checks)
        if not self.is_own(name) and (not of_root or checked):
            answer = TAKE_RULE if has_rule else ZEROS
        else:
            answer = ZEROS if ASSUME_ZEROS and (has_own or self.is_own(name)) else END
        self.note(what, name, line, answer)
        return answer

    def refuse(self, what, more=(), has_own=True):
        """Of objects and tensors of the host: raises where the program's own code asks for another rank's, and where
        this rank has none of its own that could stand for it."""
        if self.decide(what, True, more, has_own) == END:
            own = "; with --assume-zeros this rank keeps its own" if has_own else ""
            raise RuntimeError(f"shardscope dryrun: {what} is asked for, and the other ranks do not run here. With "
                               f"--rank all they do{own}")


# Threads of NCCL's groups ask the store, which is Python's, whether another rank has failed: longer than there is Python.
ASKED_OF_OTHERS = ("TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_PROPAGATE_ERROR")


def ask_nobody(torch):
    """Groups are made without those threads' questions, whatever the program says of them."""
    c10d = torch.distributed.distributed_c10d
    make = c10d._new_process_group_helper

    @functools.wraps(make)
    def made(*arguments, **more):
        before = {name: os.environ.get(name) for name in ASKED_OF_OTHERS}
        os.environ.update(dict.fromkeys(ASKED_OF_OTHERS, "0"))
        try:
            return make(*arguments, **more)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    c10d._new_process_group_helper = made


def keep_own_objects(torch, reader):
    """Objects that another rank would send: this rank has its own."""
    distributed = torch.distributed
    rank, size = distributed.get_rank, distributed.get_world_size
    broadcast = distributed.broadcast_object_list

    def root_of(source, more):
        if source is not None:
            return source
        root, group = more.get("group_src") or 0, more.get("group")
        return distributed.get_global_rank(group, root) if group is not None else root

    @functools.wraps(broadcast)
    def broadcast_object_list(object_list, src=None, *arguments, **more):
        if rank() == root_of(src, more):
            broadcast(object_list, src, *arguments, **more)
        elif size() > 1:
            reader.refuse(f"what rank {root_of(src, more)} broadcasts")

    # Names of parameters are PyTorch's own: callers give them by name.
    def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                            group_src=None):
        root = root_of(src, {"group": group, "group_src": group_src})
        if scatter_object_input_list and (rank() == root or size() == 1):
            scatter_object_output_list[0] = scatter_object_input_list[rank(group)]
        elif size() > 1:
            reader.refuse(f"what rank {root} scatters")

    def all_gather_object(object_list, obj, group=None):
        if size(group) > 1:
            reader.refuse(f"an object of each of {size(group)} ranks")
        object_list[:] = [obj] * len(object_list)

    def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        if object_gather_list:
            if size(group) > 1:
                reader.refuse(f"an object of each of {size(group)} ranks")
            object_gather_list[:] = [obj] * len(object_gather_list)

    def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
        pass  # nobody is there to take it

    def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
        source = root_of(src, {"group": group, "group_src": group_src})
        reader.refuse(f"what rank {source} sends", has_own=False)
        return source

    made = (broadcast_object_list, scatter_object_list, all_gather_object, gather_object, send_object_list,
            recv_object_list)
    for module in (distributed, distributed.distributed_c10d):
        for function in made:
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)


def lone_gloo(torch, reader):
    """A group of CPU tensors for one rank among others that do not exist."""
    distributed = torch.distributed
    c10d = distributed.distributed_c10d
    from torch._C._distributed_c10d import _create_work_from_future
    from torch.futures import Future

    def done(result):
        future = Future()
        future.set_result(result)
        return _create_work_from_future(future)

    def of_the_host(method):
        """A collective of this class, or NCCL's where it is of a card's tensors, or of none."""
        @functools.wraps(method)
        def choose(group, *arguments, **more):
            tensor = next(tensors_of(arguments), None)
            if group.of_cards is not None and (tensor is None or tensor.is_cuda):
                return getattr(group.of_cards, method.__name__)(*arguments, **more)
            return method(group, *arguments, **more)
        return choose

    def tensors_of(arguments):
        for each in arguments:
            if isinstance(each, torch.Tensor):
                yield each
            elif isinstance(each, (list, tuple)):
                yield from tensors_of(each)

    class LoneGloo(distributed.ProcessGroup):
        of_cards = None  # the group of the cards' tensors, where there are such: "cuda:nccl,cpu:gloo"

        def __init__(self, store, rank, size, timeout=None, **more):
            super().__init__(rank, size)
            self.rank_, self.size_ = rank, size
            self.options = types.SimpleNamespace()  # PyTorch writes names of ranks into it

        def _set_sequence_number_for_group(self):
            pass

        def _get_sequence_number_for_group(self):
            return 0

        def of_others(self, what):
            if self.size_ > 1:
                reader.refuse(what, reader.collectives)

        def getBackendName(self):
            return "gloo"

        @of_the_host
        def broadcast(self, tensors, options=None):
            if options is not None and options.rootRank != self.rank_:
                self.of_others(f"what rank {options.rootRank} broadcasts")
            return done(tensors)

        @of_the_host
        def allreduce(self, tensors, options=None):
            self.of_others(f"an all-reduce among {self.size_} ranks")
            if options is not None and options.reduceOp == distributed.ReduceOp.SUM:
                for tensor in tensors:
                    tensor.mul_(self.size_)
            return done(tensors)

        @of_the_host
        def allreduce_coalesced(self, tensors, options=None):
            return self.allreduce(tensors, options)

        @of_the_host
        def reduce(self, tensors, options=None):
            return self.allreduce(tensors, options)

        @of_the_host
        def allgather(self, outputs, inputs, options=None):
            self.of_others(f"an all-gather among {self.size_} ranks")
            for output, tensor in zip(outputs, inputs):
                for each in output:
                    each.copy_(tensor)
            return done(outputs)

        @of_the_host
        def _allgather_base(self, output, tensor, options=None):
            self.of_others(f"an all-gather among {self.size_} ranks")
            output.view(self.size_, -1).copy_(tensor.reshape(1, -1))
            return done([output])

        @of_the_host
        def gather(self, outputs, inputs, options=None):
            for output in outputs:
                self.of_others(f"a gather among {self.size_} ranks")
                for each in output:
                    each.copy_(inputs[0])
            return done(outputs)

        @of_the_host
        def scatter(self, outputs, inputs, options=None):
            if inputs:
                outputs[0].copy_(inputs[0][self.rank_])
            else:
                self.of_others("what another rank scatters")
            return done(outputs)

        @of_the_host
        def reduce_scatter(self, outputs, inputs, options=None):
            self.of_others(f"a reduce-scatter among {self.size_} ranks")
            for output, parts in zip(outputs, inputs):
                output.copy_(parts[self.rank_])
            return done(outputs)

        @of_the_host
        def alltoall_base(self, output, tensor, output_sizes, input_sizes, options=None):
            self.of_others(f"an all-to-all among {self.size_} ranks")
            return done([output])

        @of_the_host
        def send(self, tensors, destination, tag=0):
            return done(tensors)

        @of_the_host
        def recv(self, tensors, source, tag=0):
            self.of_others(f"what rank {source} sends")
            return done(tensors)

        @of_the_host
        def barrier(self, opts=None):
            return done([])

    def with_nccl(group, store, arguments):
        """PyTorch takes a group of Python's for all devices. Cards have NCCL, with the options that were given."""
        options = arguments.get("backend_options")
        if not isinstance(options, c10d.ProcessGroupNCCL.Options):
            options = c10d.ProcessGroupNCCL.Options()
        if arguments.get("timeout") is not None:
            options._timeout = arguments["timeout"]
        options.group_name = str(arguments.get("group_name"))
        options.global_ranks_in_group = arguments.get("global_ranks_in_group") or []
        nccl = c10d.ProcessGroupNCCL(c10d.PrefixStore("cuda/", store), group.rank_, group.size_, options)
        nccl._set_sequence_number_for_group()
        # What this class has not itself, PyTorch looks for in the group's own backends; what it has, PyTorch would call
        # again, and so another group stands for it.
        group.of_cards = distributed.ProcessGroup(store, group.rank_, group.size_)
        for each in (group, group.of_cards):
            each._register_backend(torch.device("cuda"), distributed.ProcessGroup.BackendType.NCCL, nccl)
            each._set_default_backend(distributed.ProcessGroup.BackendType.NCCL)
        group.of_cards._set_group_name(str(arguments.get("group_name")))

    if hasattr(c10d, "ProcessGroupGloo"):
        c10d.ProcessGroupGloo = LoneGloo
        c10d._GLOO_AVAILABLE = True
        make = c10d._new_process_group_helper
        signature = inspect.signature(make)

        @functools.wraps(make)
        def made(*arguments, **more):
            group, store = result = make(*arguments, **more)
            said = signature.bind(*arguments, **more)
            said.apply_defaults()
            backends = c10d.BackendConfig(said.arguments["backend"]).get_device_backend_map()
            if isinstance(group, LoneGloo) and backends.get("cuda") == "nccl":
                with_nccl(group, store, said.arguments)
            return result

        c10d._new_process_group_helper = made


def gathers_as_equal(torch, numbers):
    """What a root gathers one by one: from each absent rank what this one has, where the host knows that."""
    distributed = torch.distributed
    if not hasattr(distributed, "gather"):
        return
    original = distributed.gather

    @functools.wraps(original)
    def gathered(tensor, gather_list=None, *arguments, **more):
        work = original(tensor, gather_list, *arguments, **more)
        own = numbers.known(tensor) if numbers is not None and gather_list else None
        if own is not None and tensor.is_cuda:
            rank = distributed.get_rank(more.get("group", arguments[1] if len(arguments) > 1 else None))
            own = own.contiguous()
            for each in (one for number, one in enumerate(gather_list) if number != rank):
                numbers.derive(each.data_ptr(), own.data_ptr(), own.nbytes, b"what gather brings from other ranks")
        return work

    distributed.gather = gathered


def prepare(torch):
    library = ctypes.CDLL(None)
    reader = Reader(torch)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
    prepare.ask = kind(lambda what, has_rule: reader.decide(what.decode(), bool(has_rule)))  # kept: C calls it
    library.shardscope_standin_ask(prepare.ask)
    atexit.register(library.shardscope_standin_ask, None)  # what is freed behind Python's end asks nobody
    numbers = sys.modules["shardscope_small_values"].numbers
    if numbers is not None:
        numbers.reader = reader
    sys.modules["shardscope_alone_store"].join_others(torch, reader)
    keep_own_objects(torch, reader)
    lone_gloo(torch, reader)
    ask_nobody(torch)
    gathers_as_equal(torch, numbers)
