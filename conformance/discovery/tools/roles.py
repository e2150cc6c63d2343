"""How the field calls the contract's tools and their arguments: names only rank, a trial decides."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.aliases import likely_meaning
from conformkit.conformance.binding.translations import in_english

__all__ = ["CONSTANTS", "ROLES", "Role", "folded"]


@dataclass(frozen=True, slots=True)
class Role:
    """What says that something is a tool: words in its name, and other names of the contract's arguments."""

    named: re.Pattern[str]
    """Found in its name, in lower case without underscores."""
    spellings: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By the contract's name, names that mean it in this tool only, in lower case without underscores."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Values for arguments of such a tool that the contract does not have, by the same names."""
    methods: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By the contract's method, other names of it."""

    own: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """Names of numbers in its module that code has in place of an argument."""
    vague: re.Pattern[str] | None = None
    """Names that this tool shares with others, which a trial tells from it."""

    def says_which(self, name: str) -> bool:
        """Whether a name of this tool is no other tool's, too."""
        return self.vague is None or not self.vague.search(folded(name))

    def calls(self, name: str) -> bool:
        """Whether a name says that it is this tool, in whatever language."""
        return any(self.named.search(folded(one)) for one in (name, *in_english(name)))

    def meant(self, theirs: str, wanted: Collection[str]) -> str | None:
        """Return the contract's argument that an argument of this tool stands for, of those that are wanted."""
        forms = [folded(one) for one in (theirs, *in_english(theirs))]
        exact = next((name for name in wanted if folded(name) in forms), None)
        own = next((name for name in wanted if not {*forms}.isdisjoint(self.spellings.get(name, ()))), None)
        return exact or own or likely_meaning(theirs, wanted)


def folded(name: str) -> str:
    """Return a name in lower case without underscores."""
    return name.lower().replace("_", "")


CONSTANTS: Mapping[str, Any] = {
    **dict.fromkeys(("device", "devicetype", "dev"), "'cpu'"), "verbose": False, "shuffle": True,
    **dict.fromkeys(("split", "which", "phase", "subset"), "'train'"),
}  # fmt: skip
"""Values for arguments without a default that no tool of the contract has."""
_STREAM = (
    "train",
    "traindata",
    "trainids",
    "traintokens",
    "trainset",
    "dataset",
    "data",
    "corpus",
    "source",
    "tokens",
    "tokenids",
    "stream",
    "encoded",
    "text",
    "arr",
    "x",
)
_ROWS = {"batch_size": ("batchsize", "bsz", "numseqs", "b", "nbatch")}
_LENGTH = {"block_size": ("contextlength", "seqlen", "seqlength", "sequencelength", "contextsize", "bptt", "t",
                          "window", "windowsize", "maxlength", "length", "context", "stride")}  # fmt: skip
_SCHEDULE = {
    "step": ("it", "t", "iteration", "epoch", "step", "currentstep", "globalstep", "stepnum"),
    "peak": ("learningrate", "maxlr", "lr",
             "maxlearningrate", "lrmax", "maxrate", "alphamax", "peaklearningrate", "initiallr", "baselearningrate"),
    "floor": ("minlearningrate", "lrmin", "minrate", "alphamin", "finallearningrate", "lrfloor", "endlearningrate"),
    "warmup": ("warmupiters", "warmupsteps", "warmsteps", "tw", "numwarmupsteps", "warmupt", "warmuplength"),
    "total": ("cosinecycleiters", "cosineiters", "cosinecycle", "cycle", "cycleiters", "tc", "totaliters",
              "lrdecaysteps", "decayiters", "decay", "annealsteps", "maxiterations", "numiters", "cyclelength"),
}  # fmt: skip
_STATE = {
    "step": ("iteration", "it", "iternum", "epoch"),
    "path": ("out", "src", "file", "f", "outpath", "checkpoint", "ckpt", "destination", "dst"),
}  # fmt: skip
_CODES = {
    "encode": ("tokenize", "encodetext", "texttoids", "toids", "encodeordinary"),
    "decode": ("detokenize", "decodeids", "idstotext", "totext", "untokenize"),
}  # fmt: skip


_LABELED = {
    "labels": ("inputids", "ids", "tokens", "sequences"),  # not "targets", which callers shift by custom
    "mask": ("lossmask", "responsemask", "answermask", "completionmask", "attentionmask", "labelmask", "assistantmask"),
}  # fmt: skip
_ANSWERS = {
    "chosen": ("chosen", "w", "win", "preferred", "pos"),
    "rejected": ("rejected", "l", "lose", "dispreferred", "neg"),
}
_LOGS = ("", "logps", "logprobs", "logprob", "logp", "lp")


def _under(models: Collection[str], answer: str) -> tuple[str, ...]:
    """Return names of the log-probabilities of an answer under a model, in the orders in which people write them."""
    words = [(model, own) for model in models for own in _ANSWERS[answer]]
    return tuple(
        name
        for model, own in words
        for log in _LOGS
        for name in (model + own + log, own + model + log, model + log + own)
    )


def _id_of(words: str) -> re.Pattern[str]:
    """Return what matches names of the ids of these tokens, as `PAD`, `pad_idx` or `ID_PAD`."""
    return re.compile(f"(id|idx|tok|token)?({words})(token|tok)?(id|idx|index)?")


def _role(named: str, spellings: Mapping[str, Collection[str]] | None = None, vague: str = "", **more: Any) -> Role:
    return Role(re.compile(named), spellings or {}, vague=re.compile(vague) if vague else None, **more)


ROLES: Mapping[str, Role] = {
    "CharTokenizer": _role(
        r"char\w*(token|vocab|codec|level)|^(simple|my)?(tokenizer|vocab(ulary)?)$",
        {"text": (*_STREAM, "chars", "rawtext", "traintext")}, methods=_CODES, vague=r"^(?!.*char)",
    ),
    "BPETokenizer": _role(
        r"bpe|bytepair|^(basic|byte|my|simple)?tokenizer$",
        {"text": (*_STREAM, "rawtext", "traintext"), "vocab_size": ("nvocab", "targetvocabsize", "vocabularysize")},
        methods=_CODES, constants={"specialtokens": []},
    ),
    "train_val_split": _role(r"split", {"ids": _STREAM, "fraction": ("trainratio", "trainfraction", "p")}),
    "get_batch": _role(r"^(?!.*(mask|loss)).*batch", {"ids": _STREAM, **_ROWS, **_LENGTH}),
    "sliding_windows": _role(
        r"^(?!.*mask).*(window|chunk|sequences$|dataset$)",
        {"ids": (*_STREAM, "txt", "rawtext"), **_LENGTH},
        constants={**dict.fromkeys(("stride", "step", "hop"), 1), "split": "'train'"},
    ),
    "cross_entropy": _role(r"crossentropy|^celoss$|^ce$|nllloss|lossfn$", {
        "logits": ("inputs", "input", "yhat", "ypred", "x", "o", "out"), "targets": ("ytrue", "labels", "y", "t"),
        "label_smoothing": ("smoothing", "eps", "epsilon"), "ignore_index": ("padid", "padidx", "paddingidx"),
    }, vague=r"smooth|mask|focal|weight|fuse|chunk|binary|distill"),
    "balance_loss": _role(r"balanc|auxloss|auxiliaryloss"),
    "perplexity": _role(r"perplexity|ppl$", {"loss": ("avgloss", "meanloss", "valloss", "crossentropyloss", "l")}),
    "bits_per_character": _role(r"bitsper|bpc$|bpb$", {"loss": ("avgloss", "meanloss", "valloss", "nats")}),
    "clip_grad_norm": _role(
        r"clip\w*grad|grad\w*clip",
        {"parameters": ("parameters", "params", "p", "ps", "weights", "tensors"),
         "max_norm": ("maxl2norm", "m", "maximumnorm", "maxgradientnorm", "normlimit", "limit", "maxvalue", "gradclip",
                      "theta")},
    ),
    "AdamW": _role(
        r"adamw",
        {"params": ("parameters", "params", "p", "modelparameters"), "lr": ("alpha", "learningrate", "stepsize"),
         "weight_decay": ("wd", "decay", "lambda", "l2", "lam"), "beta1": ("b1",), "beta2": ("b2",)},
    ),
    "cosine_schedule": _role(r"cos|lr|learningrate|schedule", _SCHEDULE),
    "inverse_sqrt_schedule": _role(
        r"noam|inv(erse)?sqrt|rsqrt|lr|^rate|(learning|noam|warmup)rate|schedule",
        {**_SCHEDULE, "d_model": ("modelsize", "dim", "dmodel")}, constants={"factor": 1.0, "scale": 1.0},
    ),
    "train_step": _role(r"train(ing)?step|trainbatch|^step$", {
        "x": ("xb", "inputs", "idx", "input"), "y": ("yb", "targets", "target", "labels"),
    }),
    "evaluate": _role(r"^(evaluat|estimateloss|evalloss|validat)", {
        "batches": ("dataloader", "loader", "valloader", "testloader", "evalloader", "validloader"),
    }),
    "save_checkpoint": _role(r"save\w*(checkpoint|ckpt|state|model)|checkpoint\w*save", _STATE),
    "load_checkpoint": _role(r"(load|restore|resume)\w*(checkpoint|ckpt|state|model)", _STATE),
    "beam_search": _role(r"beam"),
    "exponential_moving_average": _role(r"^ema$|exponentialmoving|ewma|expsmooth", {"values": ("x", "losses")}),
    "rolling_mean": _role(r"(rolling|moving|running|sliding)(mean|average|avg)", {"values": ("x", "losses")}),
    "attention_entropy": _role(r"attention\w*entropy|attn\w*entropy|entropyof\w*attention"),
    "fit_power_law": _role(r"powerlaw|scalinglaw|fitscaling"),
    "create_padding_mask": _role(
        r"pad(ding)?mask|mask\w*pad", {"ids": ("seq", "x", "tokens", "inputs", "batch", "src")},
    ),
    "create_causal_mask": _role(
        r"(causal|subsequent|lookahead|future|autoregressive|squaresubsequent)\w*mask", {"size": ("sz", "seqlen", "t")},
    ),
    "create_masks": _role(r"^(create|make|get|build|generate)?masks$"),
    "shift_right": _role(r"shift", {"tgt": ("inputids", "labels", "ids", "x", "targets"), "bos_id": (
        "decoderstarttokenid", "startid", "starttokenid", "bosid", "bostokenid", "sosid")}),
    "collate": _role(r"collat"),
    "LabelSmoothingLoss": _role(
        r"labelsmooth|smooth\w*(loss|crossentropy)",
        {"vocab_size": ("size", "classes", "numclasses", "ntokens", "tgtvocabsize"),
         "ignore_index": ("paddingidx", "padidx", "padid", "paddingid"), "logits": ("x", "pred"),
         "targets": ("target", "y")},
    ),
    "collate_answers": _role(
        r"collat|(sft|instruct|answer)\w*batch",
        {"pairs": ("batch", "examples", "samples", "data", "items"), "eos_id": ("eos", "endid", "eostokenid", "eot"),
         "pad_id": ("pad", "padtokenid", "padidx")},
    ),
    "answer_loss": _role(r"(sft|answer|response|completion|instruct|assistant)\w*loss", _LABELED),
    "sequence_log_probs": _role(r"logprob|logps?$|loglikelihood", _LABELED),
    "reward_loss": _role(
        r"(reward|rm|pairwise|ranking|preference|bradley)\w*loss|^bt",
        {"chosen": ("chosenrewards", "rchosen", "chosenreward", "chosenscores", "rewardchosen", "rewardschosen",
                    "preferred", "pos", "winning", "rewardsw", "rw"),
         "rejected": ("rejectedrewards", "rrejected", "rejectedreward", "rejectedscores", "rewardrejected",
                      "rewardsrejected", "dispreferred", "neg", "losing", "rewardsl", "rl")},
    ),
    "dpo_loss": _role(r"dpo|preference\w*loss", {
        **{f"policy_{answer}": _under(("policy", "pi", "model", "actor"), answer) for answer in _ANSWERS},
        **{f"reference_{answer}": _under(("reference", "ref"), answer) for answer in _ANSWERS},
        "label_smoothing": ("eps", "epsilon", "smoothing"),
    }),
    "group_advantages": _role(
        r"advantage|group\w*(norm|reward|relative)",
        {"rewards": ("scores", "r", "rews", "rawrewards"),
         "group_size": ("numgenerations", "g", "k", "n", "samplesperprompt", "numsamples", "ngenerations")},
    ),
    "policy_loss": _role(r"ppo|grpo|policyloss|(policy|actor|clip\w*|surrogate|pg)loss", {
        "log_probs": ("logprob", "logps", "newlogprobs", "newlogps", "logp", "policylogprobs", "currentlogprobs",
                      "pertokenlogps"),
        "old_log_probs": ("oldlogprob", "oldlogps", "oldlogp", "behaviorlogprobs", "logpold", "oldpertokenlogps"),
        "advantages": ("advantage", "adv", "advs", "a"),
        "mask": ("responsemask", "completionmask", "lossmask", "actionmask", "eosmask"),
        "clip": ("cliprange", "clipeps", "cliprangeratio", "cliprate", "epsilon", "eps", "clipratio", "clipparam"),
    }),
    "kl_estimate": _role(r"kl(div|penalty|estimat|loss|approx)?$|approxkl|kl(div|penalty|estimat)", {
        "log_probs": ("logprob", "logps", "logp", "policylogprobs", "pertokenlogps"),
        "reference_log_probs": ("reflogprob", "reflogprobs", "reflogps", "logpref", "refpertokenlogps", "reflogp",
                                "referencelogps"),
        "kind": ("estimator", "klestimator", "klpenalty", "kltype", "mode", "type"),
    }),
    "mask_tokens": _role(
        r"mask\w*(token|input|lm)|mlm\w*mask|(token|input)s?mask",
        {"ids": ("inputs", "inputids", "tokens", "x"), "mask_id": ("masktokenid", "masktoken", "maskid", "maskidx"),
         "special_positions": ("specialmask", "specialtokensmask", "specialpositions", "isspecial"),
         "special_ids": ("specialids", "specialtokenids", "specials", "specialtokens"),
         "probability": ("mlmprobability", "maskprob", "prob", "p")},
        own={"mask_id": _id_of("mask"), "special_ids": _id_of("pad|cls|sep|bos|eos|sos|start|end")},
    ),
}  # fmt: skip
"""What the field calls each tool of the contract."""
