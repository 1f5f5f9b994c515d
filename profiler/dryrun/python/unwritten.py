# Casts of a recipe's weights on the host: nobody has written to the weights, and nobody looks at what is made of them, so
# that memory is only taken, and costs no room.
import functools

LEAST_ELEMENTS = 1 << 20  # smaller ones may be frequencies, masks and other numbers that count
KINDS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16"}


def prepare(torch):
    for name in ("to", *KINDS):
        setattr(torch.Tensor, name, unwritten(torch, name, getattr(torch.Tensor, name)))


def kind_of(torch, name, arguments, more):
    """What a cast on the host asks for; None where something else is asked."""
    if name in KINDS:
        return getattr(torch, KINDS[name])
    try:
        device, kind = torch._C._nn._parse_to(*arguments, **more)[:2]
    except (RuntimeError, TypeError):
        return None
    return kind if device is None or device.type == "cpu" else None


def unwritten(torch, name, cast):
    weights = (torch.Tensor, torch.nn.Parameter)

    @functools.wraps(cast)
    def cast_without_writing(*arguments, **more):
        weight = arguments[0]
        if (type(weight) not in weights or weight.device.type != "cpu" or weight.numel() < LEAST_ELEMENTS or
                not weight.is_floating_point() or (weight.requires_grad and torch.is_grad_enabled())):
            return cast(*arguments, **more)
        kind = kind_of(torch, name, arguments[1:], more)
        if kind in (None, weight.dtype) or not kind.is_floating_point:
            return cast(*arguments, **more)
        return torch.empty_like(weight, dtype=kind, requires_grad=False)

    return cast_without_writing
