"""A loss of their own of encoders and encoder-decoders: right forms of it are not red, whatever else is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformkit.conformance.defects import defect
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

ENTROPY = "nn.functional.cross_entropy"
OF_PAIRS = {
    "padding-ignored": f"        loss = {ENTROPY}(logits.mT, labels, ignore_index=self.pad_id)",
    "smoothed": f"        loss = {ENTROPY}(logits.mT, labels, label_smoothing=0.1)",
    "shifted-here": f"        loss = {ENTROPY}(logits[:, :-1].mT, labels[:, 1:])",
}
OF_HIDDEN_IDS = {
    "alone": f"            return {ENTROPY}(logits.mT, labels)",
    "with-a-term": f"            loss = {ENTROPY}(logits.mT, labels) + 0.01 * hidden.square().mean()",
    "first-ids-ignored": f"            loss = {ENTROPY}(logits.mT, labels, ignore_index=0)",
}


def verdicts(folder, name, body, profile):
    """Judge the reference with a loss like that of a known mistake, but for the lines that compute it."""
    known = defect(name)
    assert known is not None
    opening, called, rest = known.patches[1].replace.partition("loss = ")
    assert called
    end = rest.index("return")
    text = opening.rstrip(" ") + body + "\n" + " " * (len(opening) - len(opening.rstrip(" "))) + rest[end:]
    patches = (known.patches[0], replace(known.patches[1], replace=text))
    package = write_reference(folder / "patched", patches, known.variant, base=known.base)
    prefix = "S2S-LOSS" if profile == "seq2seq" else "BPRE-LOSS"
    report = run(RunRequest(impl=str(package), profile=profile, only=(prefix,), discover=False, diagnose=False))
    return {r.clause.id: (str(r.verdict), r.message) for r in report.results if r.clause.id.startswith(prefix)}


@pytest.mark.parametrize("body", OF_PAIRS.values(), ids=OF_PAIRS)
def test_right_losses_of_pairs_are_not_red(body, tmp_path):
    """Would break if padding counted, if a smoothed loss were no mean, or if a model could not shift by itself."""
    found = verdicts(tmp_path, "s2sloss-sum", body, "seq2seq")
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(
        ("S2S-LOSS-SHIFT", "S2S-LOSS-MEAN"), "pass"
    ), found


@pytest.mark.parametrize("body", OF_HIDDEN_IDS.values(), ids=OF_HIDDEN_IDS)
def test_right_losses_of_hidden_ids_are_not_red(body, tmp_path):
    """Would break if a bare loss were not found, if a further term counted, or labels were -100 in all code."""
    found = verdicts(tmp_path, "bploss-sum", body, "encoder")
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(
        ("BPRE-LOSS-PLACE", "BPRE-LOSS-MEAN"), "pass"
    ), found
