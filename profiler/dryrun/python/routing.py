# Which experts tokens go to, and which tokens are drawn, where no kernel computes it: assumptions, by rule, that the answer names.
import inspect
import json
import os
import random
import sys

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
POLICY = os.environ.get("SHARDSCOPE_DRYRUN_ROUTING", "balanced")
DRAW = int(os.environ.get("SHARDSCOPE_DRYRUN_ROUTING_DRAW", "0"))  # which one at random; 0: what is expected
MOST_EXPERTS = 4096  # a list longer than that is a vocabulary
MOST_EACH = 32  # of them; who samples keeps more candidates for a token


def weights_of(policy, experts):
    """What share each expert gets, not normalised; None: the same, token by token in turn."""
    if policy == "balanced":
        return None
    if policy == "one-expert":
        return [1.0] + [1e-9] * (experts - 1)
    if policy.startswith("zipf:"):
        return [1.0 / (i + 1) ** float(policy[5:]) for i in range(experts)]
    given = json.loads(policy)
    if len(given) != experts:
        raise SystemExit(f"shardscope dryrun: --routing lists {len(given)} shares, and tokens choose among {experts} experts: "
                         f"give a list of {experts}, or zipf:S")
    return [float(share) for share in given]


def counts_of(weights, tokens, each):
    """Tokens of each expert: as weights say, at most all tokens, and together `each` a token."""
    experts, left = len(weights), tokens * each
    counts = [0] * experts
    while left > 0:
        open_ones = [i for i in range(experts) if counts[i] < tokens]
        total = sum(weights[i] for i in open_ones)
        gained = 0
        for i in open_ones:
            share = weights[i] / total if total > 0 else 1 / len(open_ones)
            more = min(int(left * share), tokens - counts[i])
            counts[i] += more
            gained += more
        if gained == 0:  # less than one each: the heaviest first
            for i in sorted(open_ones, key=lambda i: -weights[i])[:left]:
                counts[i] += 1
                gained += 1
        left -= gained
    return counts


layers = {}


def layer_of(torch):
    """A number of the module that chooses, which chooses alike when it is called again: to compute it once more for
    backward, above all."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_varnames[:1] == ("self",):
            found = frame.f_locals
            owner = found.get("self")
            if sys.version_info < (3, 13):
                found.clear()  # a copy, which the frame would keep, and with it what its variables were
            if isinstance(owner, torch.nn.Module):
                return layers.setdefault(id(owner), len(layers))
        frame = frame.f_back
    return -1


def drawn(torch, weights, tokens, each):
    """At random: which experts are the heavy ones, alike on every rank, and then token by token."""
    layer = layer_of(torch)
    weights = list(weights)
    random.Random(f"{DRAW} {layer}").shuffle(weights)
    generator = torch.Generator()
    generator.manual_seed(random.Random(f"{DRAW} {layer} {os.environ.get('RANK', '0')}").getrandbits(48))
    shares = torch.tensor([max(weight, 1e-12) for weight in weights], dtype=torch.float64)
    return torch.multinomial(shares.expand(tokens, -1), each, generator=generator)


def chosen(torch, tokens, experts, each):
    """The experts of each token, all different, of shape (tokens, each); of no token twice the same."""
    weights = weights_of(POLICY, experts)
    if DRAW > 0:
        return drawn(torch, weights or [1.0] * experts, tokens, each)
    if weights is None:
        return torch.arange(tokens * each, dtype=torch.int64).remainder_(experts).view(tokens, each)
    counts = torch.tensor(counts_of(weights, tokens, each))
    in_order = torch.repeat_interleave(torch.arange(experts), counts)
    # No expert has more than all tokens, so what lies `tokens` apart is of different ones.
    return in_order.view(each, tokens).t().contiguous()


def is_routing(values, dim, each):
    """Whether the largest of so few numbers a row may be a token's experts."""
    return (values.dim() >= 2 and dim in (-1, values.dim() - 1) and values.is_floating_point() and
            1 <= each <= min(values.shape[-1], MOST_EACH) and 2 <= values.shape[-1] <= MOST_EXPERTS and values.numel() > 0)


noted = set()


def place_of(torch):
    """The innermost line that is not PyTorch's: its file and number."""
    frame, own = sys._getframe(1), os.path.dirname(torch.__file__) + os.sep
    while frame is not None and (frame.f_code.co_filename.startswith((own, "<frozen"))):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


def note(torch, experts, each):
    """For the report, once a line."""
    place = (*place_of(torch), experts, each)
    if place not in noted:
        noted.add(place)
        with open(os.path.join(FOLDER, "routing"), "a") as file:
            file.write(json.dumps(dict(zip(("file", "line", "experts", "each"), place))) + "\n")


def note_nothing(torch):
    """For the report, once a line."""
    file_name, line = place_of(torch)
    if (file_name, line) not in noted:
        noted.add((file_name, line))
        with open(os.path.join(FOLDER, "replaced"), "a") as file:
            file.write(json.dumps({"what": f"what a mask finds at {file_name}:{line}", "by": "nothing",
                                   "why": "no kernel computes the mask; the memory of what it would find is not counted"}) + "\n")


def note_drawn(number, count):
    """For the report, once."""
    if "drawn" not in noted:
        noted.add("drawn")
        with open(os.path.join(FOLDER, "replaced"), "a") as file:
            file.write(json.dumps({"what": "tokens drawn from a vocabulary", "by": f"number {number} of {count}",
                                   "why": "no kernel computes them; none ends its sequence, which runs to its length"}) + "\n")
