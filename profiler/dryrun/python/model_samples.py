# What a model of transformers trains on: the class that its config.json names, and samples of the shapes that the class
# takes, with random tokens, pixels and sounds. What is made of several (an image within a text) is text alone.
import inspect
import math

import torch

from fine_tuning import refused

# Where a config.json names no class that trains, in this order; in front of it what is_encoder_decoder and is_decoder say.
KINDS = ("CausalLM", "ImageTextToText", "MaskedLM", "Seq2SeqLM", "SpeechSeq2Seq", "ImageClassification", "CTC",
         "AudioClassification", "VideoClassification")
ONE_LABEL = ("SequenceClassification", "ImageClassification", "AudioClassification", "VideoClassification",
             "MultipleChoice", "NextSentencePrediction")
ANY_SIZE = 224  # of images, for models that take any
PIXELS = {"SemanticSegmentation": "long", "DepthEstimation": "float32"}
TASKS = {"CausalLM": "CAUSAL_LM", "LMHeadModel": "CAUSAL_LM", "ConditionalGeneration": "SEQ_2_SEQ_LM",
         "SequenceClassification": "SEQ_CLS", "TokenClassification": "TOKEN_CLS", "QuestionAnswering": "QUESTION_ANS"}


def unknown(kind, why):
    return refused(f"no recipe trains {kind.__name__}: {why}; give the program that does, behind --")


def parameters_of(kind):
    return inspect.signature(kind.forward).parameters


def trains(kind):
    return not {"labels", "return_loss", "start_positions"}.isdisjoint(parameters_of(kind)) or "ForPreTraining" in kind.__name__


def class_of(config):
    """The class that config.json names if it has a loss, else that of the task which such models are trained for."""
    import transformers
    for name in config.architectures or ():
        kind = getattr(transformers, name, None)
        if kind is not None and trains(kind):
            return kind
    first = ["Seq2SeqLM", "SpeechSeq2Seq"] if config.is_encoder_decoder else []
    if not getattr(config, "is_decoder", False) and not config.is_encoder_decoder:
        both = [getattr(transformers, f"AutoModelFor{one}")._model_mapping.keys() for one in ("MaskedLM", "CausalLM")]
        first += ["MaskedLM"] if all(type(config) in known for known in both) else []
    for name in (*first, *KINDS):
        found = getattr(transformers, f"AutoModelFor{name}", None)
        if found is not None and type(config) in found._model_mapping.keys():
            kind = found._model_mapping[type(config)]
            return kind[0] if isinstance(kind, tuple) else kind
    raise refused(f"this transformers has no model with a loss for model_type '{config.model_type}': a newer one may "
                  "have, or the program that trains it, behind --")


def task_of(kind):
    """peft's name of what the model is for, which then also puts its inputs in; none where they are no tokens."""
    if getattr(kind, "main_input_name", "input_ids") != "input_ids":
        return None
    if kind.__name__.endswith("ForConditionalGeneration") and "decoder_input_ids" not in parameters_of(kind):
        return "CAUSAL_LM"
    return next((task for end, task in TASKS.items() if kind.__name__.endswith(end)), None)


def outermost(module):
    """Lists of modules that are within no other; of lists of lists the inner ones."""
    for each in module.children():
        if isinstance(each, torch.nn.ModuleList) and not any(isinstance(one, torch.nn.ModuleList) for one in each):
            yield each
        else:
            yield from outermost(each)


def blocks_of(model):
    """The layers that repeat: the list of modules that has most of the parameters, and those that the model says not to
    split, or that are of the same class, in lists beside it (of a decoder beside an encoder)."""
    lists = list(outermost(model))
    most = max(lists, key=lambda each: sum(one.numel() for one in each.parameters()), default=[])
    whole = {*(getattr(model, "_no_split_modules", None) or ()), *(type(one).__name__ for one in most)}
    return [one for each in lists for one in each if each is most or type(one).__name__ in whole]


def seen_by(config):
    """The part of a configuration that is of images."""
    return getattr(config, "vision_config", None) or getattr(config, "backbone_config", None) or config


def image_size_of(config):
    """Of an image's two sides, or None where models take any."""
    return getattr(seen_by(config), "image_size", None) or getattr(config, "image_size", None)


def pixels_of(config, kind):
    """The shape of one sample's images."""
    size = image_size_of(config) or ANY_SIZE
    height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    frames = [config.num_frames] if getattr(config, "num_frames", None) and "Video" in kind.__name__ else []
    return [*frames, getattr(seen_by(config), "num_channels", 3), height, width]


class Samples:
    """Batches for a model, of which there are always more."""

    def __init__(self, config, kind, sequence, said):
        """Of so many tokens, which the user said or which are the most that the model takes."""
        self.config, self.kind, self.takes, self.said = config, kind, parameters_of(kind), said
        self.text = config.get_text_config()
        self.words = getattr(self.text, "vocab_size", None) or getattr(config, "vocab_size", None)
        self.main = getattr(kind, "main_input_name", "input_ids")
        longest = getattr(self.text, "max_position_embeddings", None) if "return_loss" in self.takes else None
        self.sequence = min(sequence, longest or sequence)

    def tokens(self, *shape, device):
        return torch.randint(0, self.words, shape, device=device)

    def images(self, batch, device):
        return torch.randn(batch, *pixels_of(self.config, self.kind), device=device)

    def inputs(self, batch, device):
        """What is put in, by the name that the class has for it."""
        if self.main == "input_features":
            long = getattr(self.config, "max_source_positions", 1500) * 2
            bins = getattr(self.config, "num_mel_bins", None) or getattr(self.config, "input_feat_per_channel", 80)
            return {"input_features": torch.randn(batch, bins, long, device=device)}
        if self.main == "input_values":  # ten seconds at 16 kHz, or what gives so many frames
            if hasattr(self.config, "num_mel_bins") and hasattr(self.config, "max_length"):  # a picture of the sound
                return {"input_values": torch.randn(batch, self.config.max_length, self.config.num_mel_bins, device=device)}
            long = self.sequence * math.prod(self.config.conv_stride) if self.said else 160_000
            return {"input_values": torch.randn(batch, long, device=device)}
        if self.main == "pixel_values" and "input_ids" not in self.takes:
            return {"pixel_values": self.images(batch, device)}
        if self.words is None:
            raise unknown(self.kind, "its config.json has no vocab_size")
        choices = (batch, 2) if self.kind.__name__.endswith("ForMultipleChoice") else (batch,)
        given = {"input_ids": self.tokens(*choices, self.sequence, device=device)}
        if "return_loss" in self.takes and "pixel_values" in self.takes:
            given["pixel_values"] = self.images(batch, device)
        return given

    def truths(self, batch, given, device):
        """What the loss compares with."""
        name, count = self.kind.__name__, getattr(self.config, "num_labels", 2)
        ids = given.get("input_ids")
        if "start_positions" in self.takes:
            return {end: torch.zeros(batch, dtype=torch.long, device=device) for end in ("start_positions", "end_positions")}
        more = {one: torch.zeros(batch, dtype=torch.long, device=device)
                for one in ("next_sentence_label", "sentence_order_label") if one in self.takes}
        if "labels" not in self.takes:
            return more
        if name.endswith(ONE_LABEL):
            if name.endswith("SequenceClassification") and (count == 1 or self.config.problem_type):
                several = (batch, count) if self.config.problem_type == "multi_label_classification" else (batch,)
                if self.config.problem_type != "single_label_classification":
                    return {"labels": torch.rand(several, device=device)}
            return {"labels": torch.zeros(batch, dtype=torch.long, device=device)}
        if name.endswith("TokenClassification"):
            return {"labels": torch.randint(0, count, ids.shape, device=device)}
        for end, kind in PIXELS.items():
            if name.endswith(end):
                return {"labels": torch.zeros(batch, *given["pixel_values"].shape[-2:], dtype=getattr(torch, kind), device=device)}
        if name.endswith("CTC"):
            frames = given[self.main].shape[-1] // math.prod(self.config.conv_stride)
            return {"labels": self.tokens(batch, max(1, min(32, frames // 4)), device=device)}
        if name.endswith(("CausalLM", "LMHeadModel", "MaskedLM", "ConditionalGeneration", "PreTraining", "Seq2Seq")):
            if ids is not None:
                return {"labels": ids, **more}
            longest = getattr(self.text, "max_target_positions", None) or getattr(self.text, "max_length", self.sequence)
            return {"labels": self.tokens(batch, min(self.sequence, longest), device=device)}
        raise unknown(self.kind, "what its labels are is not known here")

    def batch(self, size, device):
        given = self.inputs(size, device)
        return {**given, **self.truths(size, given, device)}

    def flags(self):
        """What is said beside tensors."""
        return {"return_loss": True} if "return_loss" in self.takes and "labels" not in self.takes else {}

    def tell(self):
        """What a run of one's own may have beside this."""
        if self.main == "input_ids" and "return_loss" not in self.takes and "pixel_values" in self.takes:
            print(f"recipe: {self.kind.__name__} is given text alone: how images become tokens is a processor's, which "
                  "config.json does not say", flush=True)
        if self.main == "pixel_values" and image_size_of(self.config) is None:
            print(f"recipe: {self.kind.__name__} takes images of any size: {ANY_SIZE} x {ANY_SIZE} here", flush=True)
