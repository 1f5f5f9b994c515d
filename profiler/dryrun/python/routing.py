# Which experts tokens go to where no kernel computes it: an assumption, by rule, that the answer names.
import json
import os
import sys

FOLDER = os.environ.get("SHARDSCOPE_DRYRUN_FOLDER", "")
POLICY = os.environ.get("SHARDSCOPE_DRYRUN_ROUTING", "balanced")
MOST_EXPERTS = 4096  # a list longer than that is a vocabulary


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


def chosen(torch, tokens, experts, each):
    """The experts of each token, all different, of shape (tokens, each); of no token twice the same."""
    weights = weights_of(POLICY, experts)
    if weights is None:
        return torch.arange(tokens * each, dtype=torch.int64).remainder_(experts).view(tokens, each)
    counts = torch.tensor(counts_of(weights, tokens, each))
    in_order = torch.repeat_interleave(torch.arange(experts), counts)
    # No expert has more than all tokens, so what lies `tokens` apart is of different ones.
    return in_order.view(each, tokens).t().contiguous()


def is_routing(values, dim, each):
    """Whether the largest of so few numbers a row may be a token's experts."""
    return (values.dim() >= 2 and dim in (-1, values.dim() - 1) and values.is_floating_point() and
            1 <= each <= values.shape[-1] and 2 <= values.shape[-1] <= MOST_EXPERTS and values.numel() > 0)


noted = set()


def note(torch, experts, each):
    """For the report, once a line: the innermost one that is not PyTorch's."""
    frame, own = sys._getframe(1), os.path.dirname(torch.__file__) + os.sep
    while frame is not None and (frame.f_code.co_filename.startswith((own, "<frozen"))):
        frame = frame.f_back
    place = (frame.f_code.co_filename, frame.f_lineno, experts, each) if frame else ("", 0, experts, each)
    if place not in noted:
        noted.add(place)
        with open(os.path.join(FOLDER, "routing"), "a") as file:
            file.write(json.dumps(dict(zip(("file", "line", "experts", "each"), place))) + "\n")
