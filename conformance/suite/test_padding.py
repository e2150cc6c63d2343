"""Clauses of spec/padding.md. Masks are read as who may attend to what: True, unless something else is declared."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_equal, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.mask_builders import Builder, masks_of, of_keys, of_pairs
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask
from conformkit.spec.padding import padding_mask, target_mask

TEXT = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9]])
"""Ids (3, 5) without a pad of 0."""
OTHER = 7
"""A pad that is not 0, so that 0 is an id like others."""
LENGTHS = (3, 5, 1)
_MAX_ENTRIES = 400_000
"""Entries that one result may have."""
_ENTRY = 300.0
"""An entry of a mask is sent and compared: as costly as some hundred multiplications."""


@clause("PAD-SHAPE")
def test_the_mask_has_one_entry_for_each_row_and_key(create_padding_mask: Tool) -> None:
    for rows, keys in each_of("rows, keys", [(3, 5), (1, 4), (2, 1)]):
        ids = _padded(np.resize(TEXT, (rows, keys)), 0, [max(1, keys - row) for row in range(rows)])
        of_keys("the mask", Builder(create_padding_mask)("the mask", create_padding_mask(ids=ids)), rows, keys)


@clause("PAD-BOOL")
def test_the_mask_consists_of_truth_values(create_padding_mask: Tool) -> None:
    Builder(create_padding_mask).check_kind("the mask", create_padding_mask(ids=_padded(TEXT, 0, LENGTHS)))


@clause("PAD-POLARITY")
def test_true_means_may_attend(create_padding_mask: Tool) -> None:
    seen = _seen(create_padding_mask, TEXT)
    advice = '; declare mask = { true = "hide" } if your attention reads it so' if not seen.any() else ""
    check(f"without padding, {int((~seen).sum())} of {seen.size} ids are hidden{advice}", bool(seen.all()))


@clause("PAD-ROWS")
def test_each_row_of_a_batch_has_a_mask_of_its_own(create_padding_mask: Tool) -> None:
    ids = _padded(TEXT, 0, LENGTHS)
    together = _seen(create_padding_mask, ids)
    for row in each_of("row", range(len(ids))):
        check_equal(f"row {row} of the mask", together[row], _seen(create_padding_mask, ids[row : row + 1])[0])


@clause("MASK-PAD-BUILD")
def test_pads_are_hidden_and_nothing_else(create_padding_mask: Tool) -> None:
    for pad in each_of("pad", _pads(create_padding_mask)):
        text = np.where(pad == TEXT, 0, TEXT)  # with another pad, 0 is an id; the last id of the full row is one, too
        text[1, 4] = text[0, 1] = 0 if pad else 6
        ids = _padded(text, pad, LENGTHS)
        check_equal("who is seen", _seen(create_padding_mask, ids, pad), padding_mask(ids, pad)[:, 0, 0])
    stored = facts("MASK-PAD-BUILD")[0]
    under(f"golden {stored.number}, {stored.title}")
    ids = np.array(stored.inputs["ids"])
    check_equal("who is seen", _seen(create_padding_mask, ids), np.array(stored.value["mask"]))


@clause("PAD-LEFT")
def test_a_pad_is_hidden_wherever_it_stands(create_padding_mask: Tool) -> None:
    for pad in each_of("pad", _pads(create_padding_mask)):
        ids = np.where(pad == TEXT, 2, TEXT)
        ids[0, :2] = ids[1, 2] = ids[2, 0] = ids[2, 4] = pad
        check_equal("who is seen", _seen(create_padding_mask, ids, pad), padding_mask(ids, pad)[:, 0, 0])


@clause("PAD-ALL")
def test_a_row_of_pads_alone_is_hidden_as_a_whole(create_padding_mask: Tool) -> None:
    ids = _padded(TEXT, 0, (4, 0, 5))
    check_equal("who is seen", _seen(create_padding_mask, ids), padding_mask(ids, 0)[:, 0, 0])
    check_equal("who is seen of pads alone", _seen(create_padding_mask, ids[1:2]), np.zeros((1, 5), np.bool_))


@clause("PAD-PURE")
def test_the_ids_stay_as_they_are(create_padding_mask: Tool) -> None:
    ids = _padded(TEXT, 0, LENGTHS)
    for name, after in create_padding_mask.leaves(ids=ids).items():
        check_equal(f"{name} afterwards", after, ids)


@clause("PAD-CAUSAL-SHAPE")
def test_a_causal_mask_is_square(create_causal_mask: Tool) -> None:
    for size in each_of("size", [4, 1, 7]):
        _triangle(create_causal_mask, size)


@clause("PAD-CAUSAL-PAST")
def test_each_position_may_attend_to_all_before_it(create_causal_mask: Tool) -> None:
    for size in each_of("size", [2, 5, 8]):
        earlier = causal_mask(size) & ~np.eye(size, dtype=np.bool_)
        check_equal("who sees earlier positions", _triangle(create_causal_mask, size) & earlier, earlier)


@clause("PAD-CAUSAL-FUTURE")
def test_no_position_may_attend_to_a_later_one(create_causal_mask: Tool) -> None:
    for size in each_of("size", [2, 5, 8]):
        seen = _triangle(create_causal_mask, size) & ~causal_mask(size)
        check_equal("who sees later positions", seen, np.zeros((size, size), np.bool_))


@clause("PAD-CAUSAL-DIAG")
def test_each_position_may_attend_to_itself(create_causal_mask: Tool) -> None:
    for size in each_of("size", [5, 1, 2]):
        check_equal("who sees itself", np.diag(_triangle(create_causal_mask, size)), np.ones(size, np.bool_))


@clause("PAD-MASKS-SHAPE")
def test_there_is_a_mask_for_the_source_and_one_for_the_target(create_masks: Tool) -> None:
    for rows, source, target in each_of("rows, source, target", [(2, 5, 3), (3, 2, 4), (1, 4, 1)]):
        _masks(create_masks, np.resize(TEXT, (rows, source)), np.resize(TEXT, (rows, target)))


@clause("PAD-MASKS-POLARITY")
def test_in_both_masks_true_means_may_attend(create_masks: Tool) -> None:
    src, tgt = _masks(create_masks, TEXT, TEXT[:, :4])
    advice = '; declare mask = { true = "hide" } if your attention reads it so'
    check(f"without padding, the source's mask hides all{advice}", bool(src.any()))
    first = tgt[:, -1, 0]
    check(f"without padding, the target's last position does not see the first{advice}", bool(first.all()))


@clause("PAD-MASKS-SOURCE")
def test_the_sources_mask_hides_its_padding_and_nothing_else(create_masks: Tool) -> None:
    for pad in each_of("pad", _pads(create_masks)):
        ids = _padded(np.where(pad == TEXT, 0, TEXT), pad, LENGTHS)
        seen = _masks(create_masks, ids, np.full((3, 4), 2), pad)[0]
        check_equal("who is seen of the source", seen, padding_mask(ids, pad)[:, 0, 0])


@clause("PAD-MASKS-FUTURE")
def test_the_targets_mask_hides_what_comes_later(create_masks: Tool) -> None:
    for size in each_of("size", [4, 1, 2]):
        seen = _masks(create_masks, TEXT, TEXT[:, :size])[1]
        check_equal("who sees whom", seen, np.repeat(causal_mask(size)[None], len(TEXT), axis=0))


@clause("S2S-TGT-MASK")
def test_the_targets_mask_is_that_of_the_ids_that_are_read(create_masks: Tool) -> None:
    stored = facts("S2S-TGT-MASK")[0]
    under(f"golden {stored.number}, {stored.title}")
    ids = np.array([stored.value["input"], stored.value["input"]])
    keys = np.flatnonzero(stored.value["mask"])
    seen = _masks(create_masks, TEXT[:2], ids)[1]
    hidden = [int(key) for key in keys if not seen[0, key:, key].all()]
    check(f"of {ids[0].tolist()}, the real ids at {hidden} are hidden from themselves or from later ones", not hidden)


@clause("PAD-MASKS-TARGET")
def test_the_targets_mask_hides_its_padding_too(create_masks: Tool) -> None:
    for pad in each_of("pad", _pads(create_masks)):
        ids = _padded(np.where(pad == TEXT, 0, TEXT), pad, LENGTHS)
        seen = _masks(create_masks, np.full((3, 4), 2), ids, pad)[1]
        check_equal("who sees whom", seen, target_mask(ids, pad)[:, 0])


@clause("PAD-MASKS-MEMORY")
def test_the_memorys_mask_is_the_sources(create_masks: Tool) -> None:
    ids = _padded(TEXT, 0, LENGTHS)
    found = masks_of(create_masks(src=ids, tgt=TEXT[:, :4]))
    if len(found) < 3:
        raise NotApplicable("it returns no mask for the memory: the source's serves")
    seen = of_keys("the memory's mask", Builder(create_masks)("the memory's mask", found[2]), *ids.shape)
    check_equal("who is seen of the memory", seen, padding_mask(ids, 0)[:, 0, 0])


def _telling(ids: Array, size: int, draw: Draw) -> Array:
    """Write the last id of a vocabulary, and powers of two, to some places: what keeps ids in a byte reads 0."""
    told = [size - 1, *(1 << power for power in reversed(range(size.bit_length())) if 1 << power < size)]
    places = draw.permutation(ids.size)[: len(told)]
    ids.flat[places] = told[: len(places)]
    return ids


@clause("PAD-SIZES")
def test_the_padding_mask_is_that_of_the_definition_at_every_size(create_padding_mask: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, shape = draw.at(sizes), (sizes["batch"], sizes["tokens"])
        whole = _telling(1 + own.ids(sizes["vocab_size"] - 1, *shape), sizes["vocab_size"], own)
        for ids in (whole, _padded(whole, 0, own.ids(shape[1], shape[0]))):
            check_equal("who is seen", _seen(create_padding_mask, ids), padding_mask(ids, 0)[:, 0, 0])

    check_at_sizes(draw, check_sizes, lambda sizes: _ENTRY * sizes["batch"] * sizes["tokens"], dict,
                   after="MASK-PAD-BUILD")  # fmt: skip


@clause("PAD-CAUSAL-SIZES")
def test_the_causal_mask_is_a_triangle_at_every_size(create_causal_mask: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        size = sizes["tokens"]
        check_equal("who sees whom", _triangle(create_causal_mask, size), causal_mask(size))

    check_at_sizes(draw, check_sizes, lambda sizes: _ENTRY * sizes["tokens"] ** 2, dict, after="PAD-CAUSAL-PAST")


@clause("PAD-MASKS-SIZES")
def test_both_masks_are_those_of_the_definition_at_every_size(create_masks: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, batch = draw.at(sizes), sizes["batch"]
        src, tgt = (_ragged(own, batch, sizes[name]) for name in ("keys", "tokens"))
        source, target = _masks(create_masks, src, tgt)
        check_equal("who is seen of the source", source, padding_mask(src, 0)[:, 0, 0])
        check_equal("who sees whom in the target", target, target_mask(tgt, 0)[:, 0])

    def cost(sizes: Case) -> float:
        return _ENTRY * sizes["batch"] * (sizes["keys"] + sizes["tokens"] ** 2)

    def readable(sizes: Case) -> dict[str, int]:
        return {**sizes, "batch": min(sizes["batch"], max(1, _MAX_ENTRIES // (sizes["keys"] + sizes["tokens"] ** 2)))}

    check_at_sizes(draw, check_sizes, cost, readable, after="PAD-MASKS-TARGET")


def _ragged(draw: Draw, rows: int, length: int) -> Array:
    """Return ids (rows, length) with pads of 0 behind a drawn number of them, in one row none."""
    lengths = draw.ids(length + 1, rows)
    lengths[draw.integer(0, rows - 1)] = length
    return _padded(1 + draw.ids(2000, rows, length), 0, lengths)


def _padded(ids: Array, pad: int, lengths: Any) -> Array:
    """Return ids with pads behind so many in each row."""
    return np.where(np.arange(ids.shape[1]) < np.asarray(lengths)[:, None], ids, pad)


def _pads(tool: Tool) -> list[int]:
    return [0, OTHER] if tool.offers("pad-id") else [0]


def _given(tool: Tool, pad: int | None) -> dict[str, Any]:
    return {"pad_id": pad} if pad is not None and tool.offers("pad-id") else {}


def _seen(tool: Tool, ids: Array, pad: int | None = None) -> Array:
    """Return which ids (B, T) may be attended to."""
    mask = Builder(tool)("the mask", tool(ids=ids, **_given(tool, pad)))
    return of_keys("the mask", mask, *ids.shape)


def _triangle(tool: Tool, size: int) -> Array:
    mask = Builder(tool)("the mask", tool(size=size))
    fits = mask.shape[-2:] == (size, size) and mask.size == size * size
    check(f"the mask has shape {mask.shape}, expected ({size}, {size})", fits)
    return mask.reshape(size, size)


def _masks(tool: Tool, src: Array, tgt: Array, pad: int | None = None) -> tuple[Array, Array]:
    """Return who of src (B, S) is seen, and who of tgt sees whom (B, T, T)."""
    found, read = masks_of(tool(src=src, tgt=tgt, **_given(tool, pad))), Builder(tool)
    source, target = "the source's mask", "the target's mask"
    return of_keys(source, read(source, found[0]), *src.shape), of_pairs(target, read(target, found[1]), *tgt.shape)
