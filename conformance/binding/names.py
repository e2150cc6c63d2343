"""How parameters are usually called: how well an implementation's name fits a canonical one.

This gives only a ranking. What names leave open is decided by probing (solve.py).
"""

from __future__ import annotations

import re
from functools import cache

from conformkit.conformance.binding.translations import in_english

__all__ = ["fit", "template"]

_ATTENTION = {"attn", "attention", "mha", "sa", "selfattn", "selfattention", "multihead", "multiheadattention", "att"}
_FEED_FORWARD = {"mlp", "ffn", "ff", "feedforward", "ffwd", "fc", "ffnet", "positionwise", "intermediate", "fforward"}
_NORMS = {"ln", "norm", "layernorm", "rmsnorm", "rms", "lns", "norms", "lnf", "normf", "lnorm"}
_BIASES = {"bias", "b", "beta", "shift", "offset"}
_WEIGHTS = {"weight", "w", "kernel", "gamma", "g", "scale", "alpha", "matrix", "table"}


def _linear_names(*stems: str) -> set[str]:
    """Return common names of linear maps: q, wq, qproj, projq, toq, linearq and so on."""
    affixes = ("w", "proj", "to", "lin", "linear", "fc", "dense", "layer", "net", "c", "m", "mat", "projection", "map")
    found = set(stems)
    for stem in stems:
        found |= {affix + stem for affix in affixes} | {stem + affix for affix in affixes}
    return found


def _norm_names(*stems: str) -> set[str]:
    """Return common names of the norms of queries or keys: qnorm, normq, qln, qn, querylayernorm and so on."""
    words = ("norm", "layernorm", "ln", "n", "rmsnorm", "rms", "gain", "gamma", "scale")
    return {stem + word for stem in stems for word in words} | {word + stem for stem in stems for word in words}


_ROLES: dict[str, set[str]] = {
    "q": _linear_names("q", "query", "queries", "qs", "qry", "qbproj", "qup", "upq", "wqb", "uq", "qnope"),
    "k": _linear_names("k", "key", "keys", "ks", "kup", "upk", "uk", "knope"),
    "v": _linear_names("v", "value", "values", "vs", "val", "vup", "upv", "uv"),
    "qkv": _linear_names("qkv", "querykeyvalue", "in", "attn", "kqv", "packed") | {"cattn", "inproj", "fused"},
    "kv": _linear_names("kv", "keyvalue", "kvb", "kvup", "upkv", "ukv"),
    "qk": _linear_names("qk", "querykey"),
    "out": _linear_names("o", "out", "output", "proj")
    | {"cproj", "unify", "unifyheads", "dense", "merge", "combine", "mix"},
    "q_norm": _norm_names("q", "query"),
    "k_norm": _norm_names("k", "key"),
    "q_latent": _linear_names("qlatent", "qdown", "qa", "dq", "qcompress", "qcompressed", "downq", "qlora", "qloraa"),
    "q_latent_norm": _norm_names("q", "qlatent", "qa", "qdown", "qlora", "cq"),
    "q_rotary": _linear_names("qrotary", "qrope", "qr", "qpe", "qpos", "qrot", "ropeq", "rotaryq"),
    "kv_latent": _linear_names(
        "kvlatent", "kvdown", "kva", "dkv", "kvcompress", "kvcompressed", "downkv", "kvlora", "kvloraa", "latent",
    ) | {"kvaprojwithmqa"},
    "kv_latent_norm": _norm_names("kv", "kvlatent", "kva", "kvdown", "kvlora", "ckv", "latent"),
    "k_rotary": _linear_names("krotary", "krope", "kr", "kpe", "kpos", "krot", "ropek", "rotaryk"),
    "sinks": {"sinks", "sink", "attnsinks", "attentionsinks", "attnsink", "sinklogits", "sinkbias", "sinktoken"},
    "relative": {
        "relative", "relativeattentionbias", "relativebias", "relativepositionbias", "relbias", "relposbias", "relpos",
        "positionbias", "posbias", "relativepositions", "relativeposition", "relativepositionbiastable", "rpb", "rel",
        "bias", "biastable", "attnbias", "attentionbias", "relattnbias", "t5bias",
    },
    "output_gate": _linear_names("gate", "g", "outputgate", "outgate", "ogate", "headgate")
    | {"attngate", "attentiongate", "gating"},
    "up": _linear_names("up", "1", "in", "expand", "first", "hidden", "fc", "inner")
    | {"cfc", "0", "3", "intermediate"},
    "gate": _linear_names("gate", "g", "1"),
    "router": {
        "router", "gate", "routing", "gating", "switch", "wg", "routerproj", "gatenetwork", "routerlayer", "router0",
        "topkgate", "chooser", "selector", "gater", "wrouter", "routerweights", "gatelinear", "gateproj",
    },
    "down": _linear_names("down", "2", "out", "second", "contract", "outer") | {"cproj", "proj", "3", "output"},
    "embedding": {
        "embedding", "embed", "emb", "wte", "tokemb", "tokenembedding", "tokembed", "embeddings", "tok", "token",
        "embedtokens", "inputembedding", "tokenemb", "tokembedding", "tokenembed", "e", "we", "lookup",
        "wordembeddings", "vocabembedding",
    },
    "positions": {
        "positions", "position", "posemb", "wpe", "positionembedding", "positionembeddings", "posembedding", "pos",
        "pe", "positional", "positionalembedding", "posembed", "embedpositions", "wp", "posenc", "positionalencoding",
    },
    "head": {
        "head", "lmhead", "out", "output", "unembed", "unembedding", "proj", "tovocab", "tologits", "logits", "decoder",
        "fcout", "outproj", "projout", "classifier", "readout", "vocabproj", "outputprojection", "wu", "lm", "final",
        "fc", "outputlayer", "wout", "headproj",
    },
    "norm": {
        "norm", "lnf", "finalnorm", "lnfinal", "normf", "finallayernorm", "ln", "outnorm", "normout", "lnout",
        "layernorm", "normfinal", "rmsnorm", "lastnorm", "headnorm",
    },
    "segments": {
        "segments", "segment", "seg", "segmentembedding", "segmentembeddings", "segemb", "segembed", "tokentype",
        "tokentypeembeddings", "tokentypeembedding", "typeembedding", "typeembeddings", "tokentypes", "types", "wse",
    },
    "pooler": {"pooler", "pool", "pooling", "poolerdense", "clsdense", "poolw", "poolb", "pooldense"},
    "transform": {
        "transform", "mlmdense", "mlmtransform", "lmdense", "mlm", "transformw", "transformb", "predictiontransform",
        "headdense", "headtransform", "predictions",
    },
    "transform_norm": {"transformnorm", "mlmnorm", "mlmlayernorm", "lmnorm", "headnorm", "transformln", "mlmln"},
    "next_sentence": {
        "nextsentence", "nsp", "seqrelationship", "nsphead", "nextsentencehead", "isnext", "next", "nspw", "nspb",
        "nspclassifier", "follows",
    },
    "patch": {
        "patch", "patches", "proj", "projection", "conv", "conv1", "patchembed", "patchembedding", "patchembeddings",
        "topatch", "topatches", "patchproj", "patchprojection", "patchify", "patcher", "stem", "topatchembedding",
    },
    "class_token": {"classtoken", "clstoken", "cls", "class", "classembedding", "clsemb", "classtok"},
    "embedding_norm": {
        "embeddingnorm", "embnorm", "lnemb", "embedln", "embln", "layernormembedding", "embeddingslayernorm",
    },
}  # fmt: skip
_CROSS = {
    "crossattn", "crossattention", "crossmha", "crossmultihead", "cross", "xattn", "ca", "mhcross", "encattn",
    "encoderattn", "encoderattention", "encdecattn", "encdecattention", "encoderdecoderattention", "srcattn",
    "srcattention", "memoryattn", "contextattn", "multiheadattn", "attn2", "mha2", "attention2",
}  # fmt: skip
_SELF = {
    "selfattn", "selfattention", "selfmha", "slfattn", "sa", "maskedattn", "maskedattention", "maskedmha",
    "maskedselfattn", "maskedselfattention", "tgtattn", "decattn", "attn1", "mha1", "attention1",
}  # fmt: skip
"""Name parts that distinguish a decoder's two attentions."""
_KNOWN = (_ATTENTION, _FEED_FORWARD, _NORMS, _BIASES, _WEIGHTS, _CROSS, _SELF, *_ROLES.values())
_SIDES = {
    "src": re.compile(r"^(?:src|source|enc|encoder|input|inp|in)(?![a-z]*norm$)"),
    "tgt": re.compile(r"^(?:tgt|trg|target|dec|decoder|output|out)"),
}
_FIRST = re.compile(r"(^|[a-z])(1|a)$|attn|attention|^input|^pre|^sa|first|^in")
_ZEROTH = re.compile(r"(^|[a-z])0$")
_OF_THREE = (
    re.compile(r"self|mask|slf|^sa|sa$|first|attn1"), re.compile(r"cross|enc|src|mem|second|ca$|attn2|context"),
    re.compile(r"ff|mlp|final|third|feed"),
)  # fmt: skip
"""Name parts that distinguish the three norms of a decoder layer."""
_SECOND = re.compile(r"(^|[a-z])(2|b)$|ff|mlp|^post|second|^out|feed")


_A_PART = re.compile(r"(block|sublayer|layer|module|unit)$")
_OF_A_NORM = re.compile(r"(gain|gamma|scale|offset|shift|beta)(\d+)")
"""A numbered vector of a norm without a name of its own: `gain1`, `beta_2`."""
_LAYER = re.compile(r"(?:(?<=\.)|^)(layers?|blocks?|blk|h|l)_?(\d+|\{[^{}]*\})_(?=[^.]*$)", re.IGNORECASE)
"""The layer in a flat name: `layer0_wq`."""
_AT_THE_FRONT = re.compile(r"(?:(?<=\.)|^)([a-z]*)_?(\{i\})_(?=[^.]*$)", re.IGNORECASE)
_AT_THE_END = re.compile(r"(?<=[a-z0-9])_?\{i\}$", re.IGNORECASE)
"""The same where the number is known to count layers: `b{i}_wq`, `wq{i}`."""
_KIND = re.compile(
    r"(?<=[a-z0-9]{2})_(?=[bw]$)|(?<=ln)_(?=g$)|(?<=norm)_(?=g$)|(?<=(?:ln|rm)[0-9f])_(?=g$)", re.IGNORECASE
)
"""The kind at the end of a flat name: `up_b`, `ln1_g`; not that of `w_g`, which is a gate."""


def template(name: str) -> str:
    """Return the name with numbers kept, and case and separators folded: `h.0.c_attn` → `h.0.cattn`."""
    return ".".join(_segments(name))


@cache
def _segments(name: str) -> tuple[str, ...]:
    apart = _LAYER.sub(r"\1.\2.", name.replace("/", "."))
    apart = _AT_THE_END.sub("", _AT_THE_FRONT.sub(_without_layer, apart))
    apart = _KIND.sub(".", apart)
    return tuple(_container_alone(_folded(part)) for part in apart.split(".") if part)


def _folded(part: str) -> str:
    """Return a part of a name in lower case without separators, in English where its words are of another language."""
    forms = [re.sub("[-_]", "", form).lower() for form in (*in_english(part), part)]
    return next((form for form in forms if any(form in names for names in _KNOWN)), forms[0])


def _container_alone(part: str) -> str:
    """Return the name of a part that holds others without a word for such parts: `self_attention_block`."""
    alone = _A_PART.sub("", part)
    return alone if any(alone in names for names in (_ATTENTION, _FEED_FORWARD, _CROSS, _SELF)) else part


def _without_layer(found: re.Match[str]) -> str:
    """Return the front of a flat name: a word for the layer alone, or one that says a part, too."""
    word = found[1].lower()
    parts = (_ATTENTION, _FEED_FORWARD, _NORMS, _CROSS, _SELF, *_ROLES.values())
    says_a_part = any(word in names for names in parts)
    return f"{word}_" if says_a_part else f"{found[1]}.{found[2]}."


@cache
def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """Split a name into its kind (weight, bias or nothing) and the segments that tell its role."""
    *path, last = _segments(name)
    if last in _BIASES and path:
        return "bias", tuple(path)
    if last in _WEIGHTS and path:
        return "weight", tuple(path)
    return _read_last(tuple(path), last)


def _read_last(path: tuple[str, ...], last: str) -> tuple[str, tuple[str, ...]]:
    """Split a name whose last segment does more than to tell a kind."""
    if numbered := _OF_A_NORM.fullmatch(last):
        return "bias" if numbered[1] in _BIASES else "weight", (*path, f"norm{numbered[2]}")
    known = set().union(*_ROLES.values())
    for kind, marks in (("bias", ("bias", "beta")), ("weight", ("weight", "gamma", "kernel"))):
        for mark in marks:
            if last.endswith(mark) or last.startswith(mark):
                return kind, (*path, last.replace(mark, "", 1))
    for kind, mark in (("bias", "shift"), ("weight", "scale")):
        if last.endswith(mark):
            return kind, (*path, last.removesuffix(mark))
    if last.startswith("b") and last[1:] in known:
        return "bias", (*path, last[1:])
    return "", (*path, last)


def fit(theirs: str, canonical: tuple[str, ...], *, three: bool = False) -> float:
    """Return how well a name fits canonical parameters (several if fused); 0 if it says nothing.

    `three`: there are layers with three norms.
    """
    kind, path = _read(theirs)
    role, own_kind, container = _role(canonical)
    score = 0.0
    if kind:
        score += 2.0 if kind == own_kind else -2.0
    score += _container(path, container) + _side(path, canonical[0])
    role = role.removeprefix("src_").removeprefix("tgt_")
    if role == "norm3" or (three and role in {"norm1", "norm2"} and not canonical[0].startswith("encoder.")):
        return score + _of_three_norms(path, int(role[-1]))
    if role in {"norm1_after", "norm2_after"}:
        return score + _norm_after(path, first=role == "norm1_after")
    if role in {"norm1", "norm2"}:
        return score + _numbered_norm(path, first=role == "norm1")
    if role in _OF_PLACES and path and _is_norm(path[-1]):
        return score + _norm_at(path[:-1], role)
    names = _ROLES.get(role, set())
    for distance, segment in enumerate(reversed(path[-3:])):
        if segment in names:
            return score + 6.0 - 2.0 * distance
    return score


_OF_PLACES = {
    "embedding_norm": re.compile(r"^emb|embed"),
    "transform_norm": re.compile(r"head|transform|predict|mlm|^lm|^cls$|guess"),
}
"""Norms that are told apart by what contains them."""


def _is_norm(name: str) -> bool:
    bare = re.sub(r"\d+$", "", name)
    return bare in _NORMS and all(name not in _ROLES[role] for role in _OF_PLACES)


def _norm_at(path: tuple[str, ...], role: str) -> float:
    """Return how well a norm's containers fit: those of the embeddings, or of the masked-language head."""
    found = {name for name, words in _OF_PLACES.items() if any(words.search(segment) for segment in path[-3:])}
    if role in found:
        return 5.0
    return -3.0 if found else 1.0


def _role(canonical: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the role (`qkv` when fused), the kind and the container of canonical names."""
    *path, kind = canonical[0].split(".")
    roles = [name.split(".")[-2] for name in canonical]
    role = {"qkv": "qkv", "kv": "kv", "qk": "qk"}.get("".join(sorted(roles, key="qkv".find)), roles[0])
    return role, kind, path[-2] if len(path) > 1 else ""


def _container(path: tuple[str, ...], container: str) -> float:
    if container in {"self_attention", "cross_attention"}:
        own, others = (_SELF, _CROSS) if container == "self_attention" else (_CROSS, _SELF)
        score = 3.0 * any(s in own for s in path) - 3.0 * any(s in others for s in path)
        return score + _container(path, "attention")
    said = {
        "attention": any(s in _ATTENTION or s in _CROSS for s in path),
        "feed_forward": any(s in _FEED_FORWARD for s in path),
    }
    if container == "shared":
        return 3.0 if any("share" in s for s in path) else -3.0
    if container in said:
        other = "feed_forward" if container == "attention" else "attention"
        return 2.0 * said[container] - 3.0 * (said[other] and not said[container])
    return 0.0


def _side(path: tuple[str, ...], canonical: str) -> float:
    """Distinguish the source's parameters from the target's, the encoder's from the decoder's."""
    head = canonical.split(".", maxsplit=1)[0]
    side = {"encoder": "src", "decoder": "tgt"}.get(head, head[:3] if head[3:4] == "_" else "")
    if side not in _SIDES:
        return 0.0
    other = "tgt" if side == "src" else "src"
    first = next((s for s in path if _SIDES["src"].match(s) or _SIDES["tgt"].match(s)), "")
    return 3.0 * bool(_SIDES[side].match(first)) - 3.0 * bool(_SIDES[other].match(first))


def _of_three_norms(path: tuple[str, ...], role: int) -> float:
    """Distinguish the norms of a decoder layer by name, else by their numbers from 0 or 1."""
    ending = path[-3:]
    bare = [re.sub(r"\d+$", "", segment) for segment in ending]
    score = 4.0 if any(b.startswith(n) or b.endswith(n) for b in bare if b for n in _NORMS) else -4.0
    named = [number for number, words in enumerate(_OF_THREE, 1) if any(words.search(s) for s in ending[-2:])]
    if len(named) == 1:
        return score + (3.0 if named[0] == role else -3.0)
    numbers = [int(found[0]) for segment in reversed(ending) if (found := re.search(r"\d+$", segment))]
    if not numbers:
        return score
    return score + (2.0 if role - numbers[0] in {0, 1} else -3.0)


_BEHIND = re.compile(r"post|after|behind|out$|(^|[a-z])[2b]$")
_OF_ATTENTION = re.compile(r"attn|attention|^sa|1")
_OF_NETWORK = re.compile(r"ff|mlp|feed|2")


def _norm_after(path: tuple[str, ...], *, first: bool) -> float:
    """Return how well a name fits the norm behind attention, or that behind the network, of a block with four norms."""
    said = next((segment for segment in reversed(path) if not segment.isdigit()), "")
    score = 4.0 if any(word in said for word in _NORMS) else -4.0
    score += 3.0 if _BEHIND.search(said) else -3.0
    attention, network = bool(_OF_ATTENTION.search(said)), bool(_OF_NETWORK.search(said))
    return score + (0.0 if attention == network else 2.0 if attention == first else -2.0)


def _numbered_norm(path: tuple[str, ...], *, first: bool) -> float:
    said = next((segment for segment in reversed(path) if not segment.isdigit()), "")
    bare = re.sub(r"\d+$", "", said)
    score = 4.0 if any(bare.startswith(n) or bare.endswith(n) for n in _NORMS) else -4.0
    last = path[-1] if path else ""
    if not _FIRST.search(last) and not _SECOND.search(last) and len(path) > 1 and path[-2].isdigit():
        last = path[-2]  # a list of sublayers, each with its norm
    if score > 0 and _ZEROTH.search(last):  # counted from 0, the second one is 1: a stronger hint than counting from 1
        return score + (4.0 if first else -4.0)
    is_second = bool(_SECOND.search(last))
    is_first = bool(_FIRST.search(last)) and not last.startswith("post")
    if is_first != is_second:
        score += 3.0 if is_first == first else -3.0
    return score
