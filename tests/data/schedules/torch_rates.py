# Writes torch_rates.tsv: the learning rates that torch's own schedulers give, with one scheduler.step() behind each step.
# With any torch; no parameter is trained. python3 torch_rates.py > torch_rates.tsv
import random
import sys
import warnings

from torch.optim.lr_scheduler import *  # noqa: F403

warnings.simplefilter("ignore")


def optimizer_of(rate):
    try:
        import torch

        return torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=rate)
    except AttributeError:  # schedulers alone
        from torch.optim.optimizer import Optimizer

        return Optimizer(rate)


def rates_of(text, rate, steps):
    optimizer = optimizer_of(rate)
    names = dict(globals())
    for name in ("ConstantLR", "LinearLR", "ExponentialLR", "StepLR", "MultiStepLR", "PolynomialLR", "CosineAnnealingLR",
                 "CosineAnnealingWarmRestarts", "OneCycleLR", "SequentialLR"):
        names[name] = lambda *a, made=globals()[name], **k: made(optimizer, *a, **k)
    scheduler = eval(text, names)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(rates) < steps:
            scheduler.step()
    return rates


def one(random, inner):
    number = lambda low, high: random.randint(low, high)
    share = lambda: round(random.uniform(0.05, 1), 3)
    return random.choice([
        lambda: f"ConstantLR(factor={share()}, total_iters={number(1, 20)})",
        lambda: f"LinearLR({share()}, {share()}, total_iters={number(1, 20)})",
        lambda: f"ExponentialLR({round(random.uniform(0.8, 1.02), 3)})",
        lambda: f"StepLR(step_size={number(1, 12)}, gamma={share()})",
        lambda: f"MultiStepLR({sorted(number(1, 30) for _ in range(number(1, 4)))}, gamma={share()})",
        lambda: f"PolynomialLR(total_iters={number(1, 40)}, power={random.choice([0.5, 1, 1.0, 2, 3.5])})",
        lambda: f"CosineAnnealingLR(T_max={number(1, 50)}, eta_min={random.choice([0, 1e-5, 3e-4])})",
        lambda: f"CosineAnnealingWarmRestarts({number(1, 12)}, T_mult={number(1, 3)}, eta_min={random.choice([0, 1e-5])})",
        lambda: f"OneCycleLR(max_lr={share()}, total_steps=60, pct_start={share()}, cycle_momentum=False, "
                f"anneal_strategy='{random.choice(['cos', 'linear'])}', div_factor={number(2, 30)}, "
                f"final_div_factor={random.choice([10, 1e4])}, three_phase={random.choice([True, False])})"
        if not inner else one(random, True),
    ])()


def text_of(random):
    if random.random() < 0.6:
        return one(random, False)
    count = random.randint(2, 3)
    milestones = sorted(random.sample(range(1, 50), count - 1))
    return f"SequentialLR([{', '.join(one(random, True) for _ in range(count))}], milestones={milestones})"


def main():
    source = random.Random(20)
    plain = ["ConstantLR()", "LinearLR()", "PolynomialLR()", "StepLR(7)", "CosineAnnealingLR(20)",
             "CosineAnnealingWarmRestarts(T_0=5)", "OneCycleLR(0.1, 60, cycle_momentum=False)"]
    for text in plain + [text_of(source) for _ in range(93)]:
        rates = rates_of(text, 1e-3, 60)
        sys.stdout.write("\t".join([text] + [repr(float(rate)) for rate in rates]) + "\n")


main()
