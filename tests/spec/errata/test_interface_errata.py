"""The numbers of the errata on tokenizers, generation and interfaces."""

from __future__ import annotations

import numpy as np
import torch

from conformkit.spec.attention import softmax
from conformkit.spec.generation import continue_greedily, next_token_probabilities

LOGITS = np.array([2.0, 1.0, 0.5, 0.1, -0.5])
HALVES = np.log([0.5, 0.25, 0.125, 0.125])


def test_err_170_letters_have_separate_ids(printed, differ):
    letters = [ord(letter) - 33 for letter in "Hello"]  # GPT-2 numbers printable ASCII in its order, from 0
    differ(letters, [15496, 8894, 75, 75, 78])
    printed({"H, e, l, l, o": letters})


def test_err_171_unseen_characters_have_bytes(printed, differ):
    seen = set(b"To be, or not to be")
    missing = [byte for byte in "é".encode() if byte not in seen]
    differ(len(missing), 0)
    printed({"bytes of é": list("é".encode()), "of them in 'To be, or not to be'": 2 - len(missing)})


def test_err_172_code_points_are_not_ids_of_a_small_vocabulary(printed, outcome):
    ids = [ord(letter) for letter in "The "]
    table = torch.nn.Embedding(65, 2)
    printed({"code points of 'The '": ids, "lookup in 65 rows": outcome(lambda: table(torch.tensor(ids)))})


def test_err_173_reaching_p_is_enough(printed, differ):
    reached = (next_token_probabilities(HALVES, top_p=0.75) > 0).sum()
    exceeding = int((np.array([0.0, 0.5, 0.75, 0.875]) <= 0.75).sum())  # the higher ranks do not exceed it yet
    differ(reached, exceeding)
    printed({"tokens that reach 0.75": reached, "tokens that exceed it": exceeding})


def test_err_174_powers_need_a_new_sum(printed, differ):
    powers = {tau: (softmax(LOGITS) ** (1 / tau)) for tau in (2.0, 0.5)}
    for tau, power in powers.items():
        differ(power.sum(), 1, by=0.1)
        np.testing.assert_allclose(power / power.sum(), next_token_probabilities(LOGITS, temperature=tau), atol=1e-12)
    printed({"sum for τ 2": powers[2.0].sum(), "sum for τ 0.5": powers[0.5].sum()})


def test_err_175_scores_of_beams_rank_differently(printed, differ):
    logs = {"short": np.log([0.5, 0.4]), "long": np.log([0.5, 0.8, 0.8, 0.5])}
    plain = {name: float(parts.sum()) for name, parts in logs.items()}
    by_length = {name: float(parts.mean()) for name, parts in logs.items()}
    assert plain["short"] > plain["long"]
    assert by_length["long"] > by_length["short"]
    differ(plain["short"], by_length["short"])
    printed({"sums": list(plain.values()), "sums by length": list(by_length.values())})


def test_err_180_each_greedy_step_reads_the_sequence(printed, differ):
    lengths = []

    def model(ids: np.ndarray) -> np.ndarray:
        lengths.append(ids.shape[1])
        return np.zeros((*ids.shape, 3))

    continue_greedily(model, np.zeros((1, 2), np.int64), 4, 16)
    differ(lengths, 1)
    printed({"positions read in four steps": lengths})


def test_err_182_hooks_on_modules_see_gradients_of_outputs(printed, differ):
    layer, seen = torch.nn.Linear(1, 1, bias=False), []
    layer.register_full_backward_hook(lambda _module, _inputs, outputs: seen.append(outputs[0].norm().item()))
    layer(torch.tensor([[10.0]], requires_grad=True)).sum().backward()
    parameter = layer.weight.grad.norm().item()
    differ(seen[0], parameter, by=1)
    printed({"norm that the hook sees": seen[0], "norm of the parameter's gradient": parameter})


def test_err_183_a_table_is_cut_to_the_length(printed, outcome):
    x, table = np.zeros((2, 3, 4)), np.zeros((1, 5, 4))
    printed({"whole table": outcome(lambda: x + table), "cut to 3": outcome(lambda: x + table[:, :3])})


def test_err_184_what_was_not_written_is_not_fast(printed, differ):
    lengths = [10, 20, 30, 50]
    written, counted = sum(lengths), 50 * len(lengths)
    differ(written, counted, by=50)
    printed({"written": written, "counted": counted, "too fast by": counted / written})
