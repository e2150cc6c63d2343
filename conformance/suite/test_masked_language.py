"""Clauses of spec/masked_language.md. Each is judged on draws with a fixed seed."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.masking import RATE, SIZE, Masked, Masking, check_share
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.masked_language import Share, shares

ROWS, LENGTH, MARKS = 300, 100, 28
"""Rows and words per row, with special ids around them: 15 % of the words of a row is a whole number."""
_DRAWS, _LATE = 4, 8
"""Draws, and places at the end of a row, which together hold enough ids to notice a wrong share."""
_FEW = 6
"""Ids of text in a vocabulary so small that each of them replaces another one."""
_ID = 1000.0
"""An id is drawn, sent and read as text: as costly as a thousand multiplications."""


@clause("MLM-SHAPE")
def test_inputs_and_labels_are_shaped_like_the_ids(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    for rows, length in each_of("rows, length", [(3, 20), (1, 40), (5, 1)]):
        masking(masking.text(rows, length))


@clause("MLM-LABELS")
def test_labels_are_the_original_ids_at_chosen_places(mask_tokens: Tool) -> None:
    made = _drawn(mask_tokens)
    check(f"most labels are {made.none}, an id that can be chosen; expected -100", not made.first <= made.none < SIZE)
    share = (made.chosen & made.text).sum() / made.text.sum()
    own = (made.labels == made.ids)[made.text].mean()
    label = f"{share:.0%} of the ids have a label, {own:.0%} their own id, with a probability of {RATE}"
    check(label, 0.0 < share < 0.5)
    check_equal("the labels of chosen ids", made.labels[made.chosen], made.ids[made.chosen])
    masking = Masking(mask_tokens)
    if masking.told:
        pad, *others = masking.special
        none = Masking(mask_tokens, others)(masking.text(20, 50)).none
        label = f"most labels are {none}, which is no special id there but one that can be chosen; expected -100"
        check(label, none != pad)


@clause("MLM-INPUTS")
def test_inputs_differ_from_the_ids_at_chosen_places_alone(mask_tokens: Tool) -> None:
    made = _drawn(mask_tokens)
    check_equal("the inputs where nothing was chosen", made.inputs[~made.chosen], made.ids[~made.chosen])
    outside = made.inputs[(made.inputs < 0) | (made.inputs >= SIZE)]
    check(f"input {outside[:1]} is not in 0 … {SIZE - 1}", not outside.size)
    size = made.first + _FEW
    few = made.first + np.arange(ROWS * LENGTH).reshape(ROWS, LENGTH) % _FEW
    inputs = Masking(mask_tokens, size=size)(few).inputs
    beyond = np.unique(inputs[(inputs < 0) | (inputs >= size)])
    check(f"input {beyond[:1]} is not in 0 … {size - 1}", not beyond.size)


@clause("MLM-PURE")
def test_the_ids_stay_as_they_are(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    given = masking.text(20, 50)
    after = mask_tokens.leaves(**masking.arguments(given))
    if "ids" in after:  # else they went as a list
        check_equal("ids afterwards", after["ids"], given)


@clause("MLM-SPECIAL")
def test_special_ids_and_pads_are_never_chosen(mask_tokens: Tool) -> None:
    for probability in each_of("probability", [None, 1.0] if mask_tokens.offers("probability") else [None]):
        made = _drawn(mask_tokens, probability=probability)
        hits = {special: int((made.chosen & (made.ids == special)).sum()) for special in Masking(mask_tokens).special}
        found = ", ".join(f"{special} {count} times" for special, count in hits.items() if count)
        check(f"special ids have a label: {found}", not found)


@clause("MLM-ROWS")
def test_each_row_is_chosen_from_on_its_own(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    chosen = masking(np.repeat(masking.text(1, LENGTH), 3, axis=0)).chosen
    for row in each_of("row", [1, 2]):
        same = bool((chosen[row] == chosen[0]).all())
        check(f"rows 0 and {row} have the same {int(chosen[0].sum())} of {LENGTH} places chosen", not same)


@clause("MLM-RATE")
def test_the_given_share_of_the_ids_is_chosen(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    rates = masking.rates()
    for probability in each_of("probability", rates):
        made, want = _drawn(mask_tokens, probability=probability), probability or RATE
        hits, words = int((made.chosen & made.text).sum()), int(made.text.sum())
        check_share("chosen ids among those that are not special", hits, words, Share(want, want), events=len(rates))
    if masking.told:
        made = Masking(mask_tokens, (*masking.special, SIZE // 2))(masking.text(ROWS, LENGTH))
        hits, words = int(made.chosen.sum()), made.ids.size  # ordinary ids below a special one
        check_share(f"chosen ids, all below {SIZE // 2}, which is special", hits, words, Share(RATE, RATE), events=1)
    if mask_tokens.offers("probability"):
        most = int(_drawn(mask_tokens, probability=0.0).chosen.sum(axis=1).max())
        check(f"with probability 0, {most} ids of a row are chosen", most <= 1)  # one where a row has at least one


@clause("MLM-EVERYWHERE")
def test_every_place_is_as_probable_as_any_other(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    made = masking(masking.text(2000, 20))
    for place, hits in enumerate(made.chosen.sum(axis=0)):
        check_share(f"rows in which place {place} of 20 is chosen", int(hits), 2000, Share(RATE, RATE), events=20)


@clause("MLM-SEED")
def test_the_same_seed_chooses_the_same_another_one_differently(mask_tokens: Tool) -> None:
    masking = Masking(mask_tokens)
    first, again, other = (masking(masking.text(5, LENGTH), seed=seed) for seed in (1, 1, 2))
    check_equal("the inputs, made again with the same seed", again.inputs, first.inputs)
    check_equal("the labels, made again with the same seed", again.labels, first.labels)
    check("two seeds choose the same places", bool((first.chosen != other.chosen).any()))


@clause("MLM-HIDDEN")
def test_most_chosen_ids_become_the_mask(mask_tokens: Tool) -> None:
    made, mask = _drawn(mask_tokens), Masking(mask_tokens).mask
    hidden, chosen = int((made.inputs[made.chosen] == mask).sum()), int(made.chosen.sum())
    kept = int((made.inputs == made.ids)[made.chosen].sum())
    label = f"of {chosen} chosen ids, {hidden} are the mask in the input, expected more than half; {kept} stay"
    check(label, 2 * hidden > chosen)


@clause("MLM-FATE")
def test_of_the_chosen_80_percent_are_masked_10_replaced_10_stay(mask_tokens: Tool) -> None:
    made, mask = _drawn(mask_tokens), Masking(mask_tokens).mask
    inputs, own = made.inputs[made.chosen], made.ids[made.chosen]
    found = {"masked": inputs == mask, "kept": inputs == own, "replaced": (inputs != mask) & (inputs != own)}
    for name, share in shares(SIZE, made.first - 1).items():
        check_share(f"chosen ids that are {name}", int(found[name].sum()), len(own), share, events=3)


@clause("MLM-REPLACED")
def test_ids_that_replace_are_drawn_from_the_whole_vocabulary(mask_tokens: Tool) -> None:
    made, masking = _drawn(mask_tokens), Masking(mask_tokens)
    new = made.inputs[made.chosen & (made.inputs != masking.mask) & (made.inputs != made.ids)]
    if len(new) == 0:
        check("no chosen id is replaced by another one", holds=False)
    upper = int((new >= SIZE // 2).sum())
    left_out = made.first + 1  # ids that are no text, and the id that was there
    share = Share(0.5, 0.5 * SIZE / (SIZE - left_out))
    check_share("ids from the upper half of the vocabulary among those that replace", upper, len(new), share, events=1)
    size = made.first + _FEW
    inputs = Masking(mask_tokens, size=size)(np.full((ROWS, LENGTH), made.first)).inputs
    check(f"id {size - 1}, the last of {size}, replaces no other one", bool((inputs == size - 1).any()))


def _drawn(mask_tokens: Tool, *, probability: float | None = None) -> Masked:
    masking = Masking(mask_tokens)
    return masking(masking.text(ROWS, LENGTH, special=MARKS), probability=probability)


@clause("MLM-SIZES")
def test_ids_of_any_batch_and_length_are_chosen_and_labeled(mask_tokens: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        batch, tokens = sizes["batch"], sizes["tokens"]
        masking = Masking(mask_tokens)
        made = [masking(masking.text(batch, tokens), seed=seed) for seed in range(_DRAWS)]
        for one in made:
            check_equal("the labels of chosen ids", one.labels[one.chosen], one.ids[one.chosen])
            check_equal("the inputs where nothing was chosen", one.inputs[~one.chosen], one.ids[~one.chosen])
        chosen, want = np.stack([one.chosen for one in made]), Share(RATE, RATE)  # (draws, B, T)
        late, last = chosen[..., -_LATE:], chosen[:, -1]
        check_share(f"chosen ids at the last {_LATE} places", int(late.sum()), late.size, want, events=40)
        check_share("chosen ids in the last row", int(last.sum()), last.size, want, events=40)

    check_at_sizes(
        draw, check_sizes, lambda sizes: _DRAWS * _ID * sizes["batch"] * sizes["tokens"], dict, after="MLM-RATE"
    )
