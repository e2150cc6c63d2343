"""Argument names that mean the contract's arguments in any signature.

Names that mean something in one place alone stand there: arguments of calls, in call_arguments.py, masks, in masks.py,
attributes and settings of undeclared code, in discovery/meanings.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from conformkit.conformance.binding.translations import in_english

__all__ = ["likely_meaning", "meaning"]


class Aliases(NamedTuple):
    """Other names of an argument. The likely ones may mean something else: a run must show that they are right."""

    usual: frozenset[str]
    likely: frozenset[str]
    """In lower case, without underscores."""


def _names(usual: str, *, likely: str = "") -> Aliases:
    return Aliases(frozenset(usual.split()), frozenset(likely.split()))


_ALIASES: dict[str, Aliases] = {
    "d_model": _names(
        "embed_dim n_embd dim hidden_size emb_dim embedding_dim width model_dim dmodel d n_embed d_in "
        "embed_size features ninp",
        likely="ndim channels nchannels dimmodel emb nemb embd embsize featuredim hiddensize size c modelsize "
        "residualdim dresid nfeatures numhiddens initsize outputdim modelwidth embeddingsize dembed dhidden units",
    ),
    "num_heads": _names(
        "n_heads n_head heads nhead h num_attention_heads nheads",
        likely="numhead nhead headcount attentionheads numattnheads attnheads",
    ),
    "d_ff": _names(
        "dim_feedforward ff_dim hidden_dim d_hidden ffn_dim intermediate_size d_inner hidden dff mlp_dim "
        "n_inner ff_hidden d_hid nhid",
        likely="dimff mlphidden mlpwidth innerdim ffsize ffwidth dffn ffnhidden dmlp mlpsize inner "
        "feedforwarddim ffnhiddensize hiddensizeff ffnnumhiddens innersize f ffhiddensize mlphiddendim ffn ff mlp "
        "dimhidden hiddenfeatures hiddenchannels inter interdim intermediate intermediatedim ffnembeddim ffnembdim "
        "ffembeddim mlpembeddim",
    ),
    "group_size": _names("num_generations n_generations samples_per_prompt num_samples", likely="g k n"),
    "kind": _names("estimator kl_estimator kl_type kl_penalty", likely="mode"),
    "clip": _names("clip_eps eps_clip cliprange clip_range clip_ratio clip_param epsilon"),
    "d_k": _names("dk key_dim"),
    "d_v": _names("dv value_dim"),
    "vocab_size": _names(
        "vocab n_vocab v num_tokens vocabulary_size num_embeddings ntoken ntokens num_classes n_classes "
        "classes tgt_vocab_size",
        likely="numembeddings vocablen vocabdim dvocab voc vocabulary ntokens numembed nsymbols alphabetsize "
        "dictionarysize dictsize ndict",
    ),
    "num_layers": _names(
        "n_layers n_layer layers depth num_blocks n_blocks num_hidden_layers nlayers N",
        likely="nblock numblock nblocks layercount numblks nblks blocks blks stacks n l",
    ),
    "block_size": _names(
        "context_length max_seq_len seq_len max_len context_size n_ctx max_length n_positions "
        "max_position_embeddings max_seq_length context ctx_len",
        likely="seqlength maxseq maxtokens contextlen window maxlen maxcontext maxpositions npositions nctx "
        "contextwindow maxsequencelength nseq positions maxt ctxsize ctx maxcontextlength longest maxposition maxpos "
        "maxpositionembedding numpositions nposition maxsequence",
    ),
    "max_len": _names(
        "max_seq_len block_size context_length max_length seq_len length n_positions max_seq_length "
        "max_position_embeddings init_size",
        likely="nctx maxpositions contextlen contextlength maxtokens maxseq seqlength context contextsize ctx ctxlen "
        "maxcontext npositions positions maxsequencelength maxt window maximumpositionencoding "
        "maxpositionencoding pe pelen pemax longest maxposition maxpos maxpositionembedding numpositions nposition "
        "maxsequence",
    ),
    "src_vocab_size": _names(
        "src_vocab source_vocab_size n_src_vocab src_vocab_len input_vocab_size enc_vocab_size "
        "encoder_vocab_size src_ntoken num_src_tokens vocab_size_src",
    ),
    "tgt_vocab_size": _names(
        "tgt_vocab trg_vocab_size target_vocab_size n_trg_vocab n_tgt_vocab tgt_vocab_len output_vocab_size "
        "dec_vocab_size decoder_vocab_size tgt_ntoken num_tgt_tokens trg_vocab vocab_size_tgt",
    ),
    "num_encoder_layers": _names(
        "n_encoder_layers encoder_layers num_enc_layers n_enc_layers enc_layers encoder_depth",
    ),
    "num_decoder_layers": _names(
        "n_decoder_layers decoder_layers num_dec_layers n_dec_layers dec_layers decoder_depth",
    ),
    "pad_id": _names("pad pad_idx padding_idx pad_token_id pad_index src_pad_idx pad_token padding_id"),
    "num_segments": _names(
        "type_vocab_size n_segments segments num_token_types n_types token_types num_types",
        likely="typevocab typevocabulary typesize nsegment numsegment segmentvocab segmentvocabsize segmentsize nseg "
        "nsegs numsegs ntype ntokentypes tokentypevocab tokentypevocabsize tokentypesize segmenttypes numsegmenttypes",
    ),
    "image_size": _names("img_size input_size image resolution image_res img_dim img_width img"),
    "patch_size": _names("patch p patch_dim patch_width kernel_size"),
    "channels": _names("in_channels num_channels in_chans n_channels c in_ch chans image_channels"),
    "num_classes": _names("n_classes num_labels classes n_class class_num out_dim n_labels num_outputs"),
    "images": _names("x img image pixel_values imgs pixels inputs input batch X"),
    "segments": _names(
        "token_type_ids segment_ids segment_info segment_label segs seg segment_labels token_types type_ids seg_ids "
        "token_type segment segment_tokens token_type_id",
    ),
    "dropout": _names(
        "p dropout_p drop p_drop dropout_rate resid_pdrop drop_rate pdrop",
        likely="rate attnp residp pattn presid pattention",
    ),
    "causal": _names(
        "is_causal masked autoregressive",
        likely="iscausal usecausalmask causalmask maskfuture",
    ),
    "kv_heads": _names(
        "num_kv_heads n_kv_heads num_key_value_heads n_kv_head",
        likely="kvheads nkv numkv keyvalueheads nkvheads numkvgroups nkvgroups",
    ),
    "ids": _names("idx input_ids tokens prompt x inp input context start"),
    "max_new_tokens": _names("n num_tokens steps max_tokens n_tokens num_new_tokens length n_new"),
    "temperature": _names("temp tau t"),
    "top_k": _names("topk k"),
    "top_p": _names("topp p nucleus"),
    "min_p": _names("minp"),
    "typical_p": _names("typical typ_p typicalp"),
    "repetition_penalty": _names("rep_penalty repeat_penalty repetitionpenalty rep_pen"),
    "presence_penalty": _names("pres_penalty presencepenalty alpha_presence presence"),
    "frequency_penalty": _names("freq_penalty frequencypenalty alpha_frequency frequency"),
    "no_repeat_ngram_size": _names("no_repeat_ngram no_repeat_ngrams norepeatngramsize"),
    "q": _names("query queries Q"),
    "k": _names("key keys K"),
    "v": _names("value values V"),
    "x": _names("input inp hidden_states src h inputs X"),
    "mask": _names("attn_mask attention_mask input_mask M"),
    "query": _names("q queries Q x_q query_states hidden_states"),
    "key": _names("k keys K x_k"),
    "value": _names("v values V x_v"),
    "memory": _names(
        "encoder_output enc_output encoder_out enc_out encoder_outputs encoder_hidden_states context mem enc "
        "encoded m source memory_states key_value_states kv kv_states key_value",
    ),
    "src": _names("source src_ids source_ids input_ids src_tokens encoder_input enc_input inputs inp"),
    "tgt": _names(
        "target trg tgt_ids target_ids decoder_input_ids tgt_tokens decoder_input dec_input targets trg_ids tgt_in tar",
    ),
    "src_mask": _names("source_mask src_padding_mask encoder_mask enc_mask src_pad_mask mask attention_mask"),
    "tgt_mask": _names(
        "target_mask trg_mask self_mask self_attn_mask self_attention_mask look_ahead_mask decoder_mask "
        "dec_mask causal_mask tgt_attn_mask slf_attn_mask decoder_attention_mask mask attn_mask "
        "attention_mask",
    ),
    "memory_mask": _names(
        "src_mask cross_mask cross_attn_mask cross_attention_mask memory_padding_mask encoder_mask enc_mask "
        "source_mask encoder_attention_mask dec_enc_attn_mask enc_dec_mask padding_mask src_padding_mask "
        "mem_mask encoder_decoder_mask attention_mask",
    ),
    "eos_id": _names("eos_token_id eos eos_token end_id stop_id stop_token end_token"),
    "bos_id": _names(
        "bos sos bos_token_id sos_id bos_idx sos_idx start_id start_token start_symbol bos_token sos_token "
        "start_token_id decoder_start_token_id start_idx",
    ),
    "use_cache": _names("kv_cache use_kv_cache cached"),
    "text": _names("corpus string s train_text"),
    "min_frequency": _names("min_freq minimum_frequency"),
    "fraction": _names("train_fraction ratio train_ratio train_frac frac split"),
    "batch_size": _names("bs batch n_batch B"),
    "logits": _names("scores predictions preds input output router_logits gate_logits"),
    "experts_active": _names("top_k k topk num_experts_per_tok experts_per_token active n_active"),
    "num_experts": _names("experts n_experts E num_local_experts"),
    "targets": _names("target labels y ids"),
    "ignore_index": _names("ignore ignore_id pad_id pad_token_id pad_idx padding_idx"),
    "label_smoothing": _names("smoothing epsilon eps"),
    "smoothing": _names("label_smoothing epsilon eps alpha smooth"),
    "mask_id": _names("mask_token_id mask_token mask_idx"),
    "special_ids": _names("special_tokens special_token_ids specials special special_tokens_ids"),
    "probability": _names("prob p mask_prob mlm_probability mask_probability ratio mask_ratio rate"),
    "pairs": _names("batch examples samples data items"),
    "size": _names("n length seq_len sz t tgt_len max_len sequence_length"),
    "loss": _names("nll mean_loss ce cross_entropy"),
    "tokens_per_character": _names("tokens_per_char tokens_per_byte"),
    "parameters": _names("params model_parameters"),
    "params": _names("parameters model_parameters"),
    "max_norm": _names("clip grad_clip max_grad_norm clip_norm threshold clip_value"),
    "lr": _names("learning_rate rate alpha"),
    "eps": _names("epsilon"),
    "weight_decay": _names("wd decay"),
    "step": _names("it iteration iter t global_step step_num i current_step cur_step n_iter"),
    "peak": _names("max_lr learning_rate peak_lr lr lr_max base_lr"),
    "floor": _names("min_lr final_lr lr_min end_lr"),
    "warmup": _names("warmup_steps warmup_iters n_warmup num_warmup_steps warm_up"),
    "total": _names(
        "total_steps max_steps lr_decay_iters max_iters decay_steps num_steps n_steps steps num_training_steps",
    ),
    "optimizer": _names("optim opt"),
    "batches": _names("loader dataloader data_loader val_loader batch_list"),
    "path": _names("filename file checkpoint_path fname filepath ckpt_path"),
    "beam_width": _names("beams num_beams width beam_size k beam"),
    "length_penalty": _names("alpha len_penalty"),
    "values": _names("xs losses series data"),
    "alpha": _names("smoothing decay"),
    "window": _names("n size window_size k"),
    "weights": _names("attention attn attn_weights attention_weights"),
    "sizes": _names("n params parameters num_params N param_counts"),
    "losses": _names("loss L"),
}


def meaning(theirs: str, contract: Iterable[str]) -> str | None:
    """Return the contract's argument that their name stands for, None for an unknown name."""
    return next(iter(meanings(theirs, contract)), None)


def meanings(theirs: str, contract: Iterable[str]) -> list[str]:
    """Return all of the contract's arguments that their name may stand for, as the contract orders them.

    A name that means nothing may mean something in another language.
    """
    names = tuple(contract)
    return next(filter(None, (_meanings(one, names) for one in (theirs, *in_english(theirs)))), [])


def _meanings(theirs: str, names: Sequence[str]) -> list[str]:
    folded = theirs.lower()
    if theirs in names:
        return [theirs]
    return [
        name
        for name in names
        if folded == name or (name in _ALIASES and not _ALIASES[name].usual.isdisjoint((theirs, folded)))
    ]


def likely_meaning(theirs: str, contract: Iterable[str]) -> str | None:
    """Return the contract's argument that their name stands for or may stand for, None for an unknown name."""
    names = tuple(contract)
    bare = theirs.lower().replace("_", "")
    same = (name for name in names if bare == name.replace("_", ""))
    likely = (name for name in names if name in _ALIASES and bare in _ALIASES[name].likely)
    inner = "d_ff" if "d_ff" in names and _is_inner_width(theirs) else None
    return meaning(theirs, names) or next(chain(same, likely), inner)


_NETWORK = {"mlp", "ff", "ffn", "ffw", "feedforward", "inner", "intermediate"}
_EXTENT = {"size", "dim", "width", "hidden", "features", "channels", "units", "d", "n", "num", "hiddens"}
_OF_EXPERTS, _COUNTING = {"expert", "moe"}, {"n", "num"}
"""Words of a mixture of experts, and those that count them: `n_expert` does, `expert_hidden` is the width of one."""


def _is_inner_width(theirs: str) -> bool:
    """Whether a name says how wide the feed-forward network is within, word by word: `mlp_hidden_size`."""
    words = set(theirs.lower().replace("feed_forward", "feedforward").split("_"))
    network = _NETWORK | _OF_EXPERTS
    extent = _EXTENT - _COUNTING if words & _OF_EXPERTS else _EXTENT
    return bool(words & network and words & extent) and words <= network | extent
