# What values that nobody computed are assumed to be, by rule, where the host decides by them: a token's experts, a token
# that is drawn, whether numbers are finite, what one operand of "or" decides alone, how often PyTorch draws again what lies
# out of bounds, and that LBFGS does not end before its last iteration.
import contextlib
import functools
import math
import sys
import threading

MOST_ELEMENTS_ROUTED, MOST_BYTES_ROUTED = 1 << 22, 1 << 25  # where tokens have experts: masks of them
# What one operand decides whatever the other is: all true, or all zeros. By these loops end whose other conditions look at
# tokens that no kernel drew.
DECIDED_BY = {"__or__": True, "logical_or": True, "bitwise_or": True, "__ior__": True,
              "__and__": False, "logical_and": False, "bitwise_and": False, "__iand__": False}
# What nobody computed is finite, as it would be in a run that goes well.
OF_FINITE = {"isfinite": True, "isnan": False, "isinf": False}
# Over as many numbers it is a vocabulary that is drawn from, not experts or classes.
SMALLEST_VOCABULARY = 256
# What finds as many elements as there are in a mask.
CHOOSING = ("nonzero", "argwhere", "where", "masked_select", "__getitem__")
NEVER = -2.0  # a tolerance that nothing is within: products are taken for 1
MOST_ROUNDS = 16  # of drawing again; what is allocated is the same from the third on
EACH = "_shardscope_each"  # of a tensor too long to keep its values: what each of them is, and at which version of it


class Assumptions:
    """Of the small values of one process, small_values.Numbers."""

    def __init__(self, numbers):
        self.numbers, self.torch = numbers, numbers.torch
        self.routing = sys.modules["shardscope_routing"]
        self.drawing = threading.local()  # `out`: how many numbers are still out of bounds, and which share stays so a round
        # By function: whether a call concerns a GPU, where what it looks at may be long.
        self.concerned = {"topk": self.chooses, "multinomial": self.looks_at_many, "argmax": self.looks_at_many,
                          "any": self.is_any_out, "all": self.sums_up,
                          **dict.fromkeys(("__getitem__", "__setitem__", "masked_select"), numbers.looks_by),
                          **dict.fromkeys(OF_FINITE, self.looks_at_many)}

    def is_on_gpu(self, value):
        return type(value) in self.numbers.kinds and value.is_cuda

    def is_small(self, value):
        return self.is_on_gpu(value) and self.numbers.is_small(value)

    def chooses(self, arguments, more):
        """The numbers that tokens choose experts by may be many before it is known that they are."""
        values = first_of(arguments, more)
        return self.is_on_gpu(values) and (
            self.numbers.is_small(values) or self.routing.is_routing(values, *dim_and_number(arguments, more)))

    def looks_at_many(self, arguments, more):
        """A vocabulary of which a token is drawn, numbers that may be infinite."""
        return self.is_on_gpu(first_of(arguments, more))

    def sums_up(self, arguments, more):
        """That so many numbers are finite is known of them together."""
        return self.numbers.concerns_a_gpu(arguments, more) or bool(arguments) and self.each_of(arguments[0]) is not None

    def is_any_out(self, arguments, more):
        return self.draws_again() or self.numbers.concerns_a_gpu(arguments, more)

    def draws_again(self):
        return getattr(self.drawing, "out", None) is not None

    def answer_any(self, made):
        """Whether a number is still out of bounds, which the host asks after each round."""
        bool(made)  # it waits for the GPU, as ever
        left, share, rounds = self.drawing.out
        self.drawing.out = left * share, share, rounds + 1
        return left * share >= 1 and rounds < MOST_ROUNDS

    def take_over_bounds(self, init):
        """PyTorch 2.14 and later draw again what lies out of bounds until nothing does, with tensors beside the one to fill."""
        original = getattr(init, "_no_grad_trunc_normal_", None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(tensor, mean, std, a, b, *arguments, **more):
            if not tensor.is_cuda:
                return original(tensor, mean, std, a, b, *arguments, **more)
            self.drawing.out = tensor.numel(), share_out(mean, std, a, b), 0
            try:
                return original(tensor, mean, std, a, b, *arguments, **more)
            finally:
                self.drawing.out = None

        init._no_grad_trunc_normal_ = wrapped

    def take_over_descent(self, kind):
        """LBFGS ends where gradients, losses or steps are within tolerances, and forgets steps along which the gradient does
        not grow. Nobody computes them: it goes on to its last iteration and keeps its history, which is the most it takes.
        A search along a line takes the first step."""
        original, dot, module = kind.step, self.torch.Tensor.dot, sys.modules[kind.__module__]
        search = module._strong_wolfe

        def first_step(*arguments, **more):
            return search(*arguments, **{**more, "max_ls": 0})

        def product(*arguments, **more):
            made = dot(*arguments, **more)
            self.set_each(made, 1, made)
            return made

        @functools.wraps(original)
        def wrapped(optimizer, *arguments, **more):
            group, ended_by = optimizer.param_groups[0], ("tolerance_grad", "tolerance_change")
            if not any(each.is_cuda for each in group["params"]):
                return original(optimizer, *arguments, **more)
            before = {name: group[name] for name in ended_by}
            group.update(dict.fromkeys(ended_by, NEVER))
            self.torch.Tensor.dot, module._strong_wolfe = product, first_step
            try:
                return original(optimizer, *arguments, **more)
            finally:
                group.update(before)
                self.torch.Tensor.dot, module._strong_wolfe = dot, search

        kind.step = wrapped

    def each_of(self, value):
        """What each element of a long tensor is; None where nothing is assumed, or it was written to since."""
        number, version = getattr(value, EACH, (None, None))
        return number if number is not None and version == value._version else None

    def make(self, function, arguments, more, made):
        """What a function made of values that are not known."""
        name, out = function.__name__, "out" in more
        self.note_nothing(name, arguments, made)
        if name == "topk":
            self.route(arguments, more, made)
        elif name in OF_FINITE and not out:
            self.set_each(made, OF_FINITE[name], first_of(arguments, more))
        elif name in ("multinomial", "argmax") and not out:
            self.draw(name, arguments, more, made)
        elif name in DECIDED_BY and not out:
            self.decide(made, arguments, DECIDED_BY[name])

    def note_nothing(self, name, arguments, made):
        """A mask that no kernel computed finds nothing: what it would have chosen is missing, which the answer says."""
        if name not in CHOOSING or name == "where" and len(arguments) != 1:
            return
        found = made[0] if type(made) is tuple and made else made
        if self.is_on_gpu(found) and found.numel() == 0 and all(
                each.numel() > 0 for each in arguments[:2] if type(each) in self.numbers.kinds):
            self.routing.note_nothing(self.torch)

    def set_each(self, made, number, value):
        """What is made of a value that nobody computed is this number, each; of what other ranks send nobody says so."""
        if not self.is_on_gpu(made) or self.numbers.is_of_others(value):
            return
        if self.numbers.is_small(made):
            self.numbers.set_all(made, int(number))
        else:
            setattr(made, EACH, (number, made._version))

    def draw(self, name, arguments, more, made):
        """A token of probabilities that nobody computed is one from the middle of the vocabulary, where none is that ends a
        sequence: sequences run to their length, which is the most that they take."""
        values = first_of(arguments, more)
        dim = more.get("dim", arguments[1] if len(arguments) > 1 else None)
        count = values.shape[-1] if values.dim() > 0 else 0
        last = name == "multinomial" or dim in (-1, values.dim() - 1) and dim is not None
        if not last or count < SMALLEST_VOCABULARY or not self.is_small(made) or self.numbers.is_of_others(values):
            return
        self.numbers.set_all(made, count // 2)
        self.routing.note_drawn(count // 2, count)

    def decide(self, made, arguments, absorbing):
        """Where an operand that the host knows decides alone: true of "or", zeros of "and"."""
        if not self.is_small(made):
            return
        for each in arguments[:2]:
            value = None if self.numbers.is_of_others(each) else self.numbers.known(each)
            if value is None or absorbing and made.dtype != self.torch.bool:
                continue
            if bool(value.all() if absorbing else not value.any()):
                self.numbers.set_all(made, int(absorbing))
                return

    def route(self, arguments, more, made):
        """The largest of what nobody computed, of a row each: a token's experts, as routing.py assumes."""
        values = first_of(arguments, more)
        dim, each = dim_and_number(arguments, more)
        if self.routing.is_routing(values, dim, each):
            experts = values.shape[-1]
            self.assume(made[1], (values.numel() // experts, experts, each), lambda chosen: chosen.view(made[1].shape))

    def route_mask(self, mask, each):
        """The same of a mask of tokens and experts."""
        def of(chosen):
            return self.torch.zeros(mask.shape, dtype=self.torch.bool).scatter_(1, chosen, True)

        self.assume(mask, (*mask.shape, each), of)

    def take_over_fused_router(self, module):
        """Transformer Engine's kernel that chooses experts makes a mask of tokens and experts."""
        original = getattr(module, "fused_topk_with_score_function", None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapped(logits, topk, *arguments, **more):
            probabilities, chosen = original(logits, topk, *arguments, **more)
            self.route_mask(chosen, topk)
            return probabilities, chosen

        module.fused_topk_with_score_function = wrapped

    def assume(self, made, choice, of):
        """`made` gets what `of` makes of the experts of each token that are assumed; `choice`: tokens, experts, and how
        many of them each token gets."""
        tokens, experts, each = choice
        self.numbers.most_elements, self.numbers.most_bytes = MOST_ELEMENTS_ROUTED, MOST_BYTES_ROUTED
        self.numbers.experts.add(experts)
        with self.numbers.unwrapped():
            self.numbers.set(made, of(self.routing.chosen(self.torch, tokens, experts, each)).to(made.dtype), [])
        self.routing.note(self.torch, experts, each)


def share_out(mean, std, a, b):
    """Which share of the numbers that PyTorch draws for a normal distribution within bounds is refused: of normal ones what
    lies outside, and where that were too many, of evenly spread ones what lies above the curve."""
    inside = (math.erf((b - mean) / std / math.sqrt(2)) - math.erf((a - mean) / std / math.sqrt(2))) / 2
    if inside > 0.3:
        return 1 - inside
    highest = math.exp(-0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2)
    return 1 - inside * std * math.sqrt(2 * math.pi) / (b - a) / highest if highest > 0 else 1.0


def first_of(arguments, more):
    return arguments[0] if arguments else more.get("input")


def dim_and_number(arguments, more):
    """Along which dimension topk looks, and for how many."""
    return (more.get("dim", arguments[2] if len(arguments) > 2 else -1),
            more["k"] if "k" in more else arguments[1] if len(arguments) > 1 else 0)
