"""The profiles: which documents of the law each of them selects, and what it asks of the code that it judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MILESTONE_PROFILES", "PROFILES", "SEARCHED_PROFILES", "Profile", "named_profile"]

_CORE = (
    "attention", "attention_properties", "masks", "self_attention", "multi_head_attention", "heads",
    "partial_rotary", "scaled_rotary", "rotary", "windows", "qk_norm", "soft_caps", "sinks", "output_gates",
    "alibi", "relative_positions", "latent_attention",
    "feed_forward", "limited_gates", "experts", "positional_encoding",
    "block", "norms", "norm_weights", "placements", "deep_norm", "embedding", "model", "model_parts", "generation",
    "sampling", "gradients", "stability", "behaviour", "modes",
    "initialization", "devices", "refusals", "cost",
)  # fmt: skip
_LM = (
    "loss", "balance", "metrics", "data", "tokenizers", "schedules", "optimization", "decoding",
    "penalties", "reports", "training", "learning",
)  # fmt: skip
_SEQ2SEQ = (
    "cross_attention", "padding", "token_embedding", "encoder", "decoder", "encoder_decoder", "seq2seq_relative",
    "seq2seq_data",
    "smoothing_loss", "masked_language", "seq2seq_generation", "seq2seq_decoding", "seq2seq_training",
)  # fmt: skip
_ENCODER = ("bert_embeddings", "bert_model", "pretraining", "masked_language")
_VISION = ("patch_embedding", "vision_transformer")
_PATHS = (
    "paths_attention",
    "paths_padding",
    "paths_cache",
    "paths_packing",
    "paths_loss",
    "paths_modes",
    "paths_compiled",
)
_FINETUNE = ("answers", "preferences", "policy_gradients")
_MODEL = (
    "windows", "soft_caps", "alibi", "relative_positions",
    "block", "norms", "norm_weights", "placements", "deep_norm", "embedding", "model",
    "model_parts", "generation", "sampling", "gradients", "stability", "behaviour", "modes", "initialization",
    "devices", "refusals", "cost",
)  # fmt: skip
"""The documents of core that speak of a block or a model."""
_DECODER = ("TinyTransformerLM",)


@dataclass(frozen=True, slots=True)
class Profile:
    """A selection of documents; nothing outside of this file compares its name."""

    name: str
    documents: tuple[str, ...]
    about: frozenset[str] | None = None
    """What its clauses are about, where it takes some of those of its documents only."""
    selects: bool = False
    """Whether it selects from documents that belong to others: a checkpoint on the way to one of those."""
    on_core: bool = False
    """Whether its clauses need some of core, which are run with them."""
    has_parts: bool = True
    """Whether components are judged, and some required; otherwise tools alone, which use the model as a whole."""
    has_tools: bool = True
    model_alone: bool = False
    """Whether the language model is all that is looked for, of components."""
    further_arguments: bool = False
    """Whether it judges what the model's call takes besides the ids: the batches of the code show some of that."""
    further_names: bool = True
    """Whether components are found under well-known other names, without a search."""
    searched: bool = False
    """Whether a run can look for what has no name of the contract, and `conform adapt` drafts it."""
    judged_inside: bool = False
    """Whether a part need not be exported, since it is judged inside its whole."""
    parts_stand_alone: bool = False
    """Whether its parts are no parts of one whole: most code has one or two of them."""
    models: tuple[str, ...] = ("Transformer",)
    """The components that contain all that it is about, the largest first."""
    one_sided: bool = False
    """Whether attention of two inputs belongs to other profiles."""

    @property
    def option(self) -> list[str]:
        """What a command line says to select it."""
        return [] if self.name == "core" else ["--profile", self.name]

    @property
    def parts_from(self) -> str:
        """The profile whose components it speaks of."""
        return self.name if self.has_parts else "core"


_MILESTONES: Mapping[str, tuple[str, ...]] = {
    "milestone1": ("attention", "attention_properties", "masks", "padding"),
    "milestone2": ("attention", "multi_head_attention", "heads", "cross_attention"),
    "milestone3": ("feed_forward", "positional_encoding", "token_embedding"),
    "milestone4": ("cross_attention", "encoder", "decoder"),
    "milestone5": (
        "encoder_decoder", "seq2seq_data", "smoothing_loss", "masked_language", "seq2seq_generation",
        "seq2seq_decoding", "seq2seq_training",
    ),
}  # fmt: skip
PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("core", _CORE, searched=True, has_tools=False, further_names=False, one_sided=True, models=_DECODER),
        Profile(
            "lm",
            _LM,
            searched=True,
            has_parts=False,
            model_alone=True,
            further_names=False,
            on_core=True,
            models=_DECODER,
        ),
        Profile(
            "model",
            _MODEL,
            frozenset({"TransformerBlock", "TinyTransformerLM", "all"}),
            selects=True,
            on_core=True,
            models=_DECODER,
        ),
        Profile("seq2seq", _SEQ2SEQ, searched=True),
        Profile("encoder", _ENCODER, searched=True, judged_inside=True, models=("BertForPreTraining", "BertModel")),
        Profile("vit", _VISION, searched=True, judged_inside=True, models=("VisionTransformer",)),
        Profile("paths", _PATHS, searched=True, model_alone=True, further_arguments=True, models=_DECODER),
        Profile("finetune", _FINETUNE, searched=True, further_names=False, parts_stand_alone=True),
        *(Profile(name, documents, selects=True, on_core=True) for name, documents in _MILESTONES.items()),
    )
}
"""By name, in the order in which one builds a transformer, which is also the order of a run."""
MILESTONE_PROFILES = tuple(_MILESTONES)
"""Checkpoints towards an encoder-decoder."""
SEARCHED_PROFILES = tuple(name for name, profile in PROFILES.items() if profile.searched)


def named_profile(name: str) -> Profile:
    """Return a profile; of several, as `lm,paths`, that of a run of all of them. Raises ValueError."""
    if strange := [one for one in name.split(",") if one not in PROFILES]:
        raise ValueError(f"profile {strange[0]!r} is not one of {', '.join(PROFILES)}")
    known = [PROFILES[one] for one in name.split(",")]
    if len(known) == 1:
        return known[0]
    models = dict.fromkeys(model for one in known for model in one.models)
    return Profile(name, tuple(stem for one in known for stem in one.documents), models=tuple(models))
