"""Generation compared with an explicit loop, and its side effects."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference import TinyTransformerLM
from conformkit.reference.generation import next_ids


@pytest.fixture
def lm() -> TinyTransformerLM:
    torch.manual_seed(11)
    return TinyTransformerLM(17, 16, 2, 2, 32, 6, dropout=0.5)


@pytest.mark.parametrize("length", [1, 4, 6, 9])
def test_greedy_equals_the_loop_written_out(lm: TinyTransformerLM, length: int) -> None:
    prompt = torch.randint(0, 17, (3, length))
    rows = [list(row) for row in prompt.tolist()]
    lm.eval()
    for row in rows:
        for _ in range(8):
            logits = lm(torch.tensor([row[-6:]]))[0, -1].tolist()
            row.append(max(range(17), key=lambda i: logits[i]))
    assert lm.generate(prompt, 8, temperature=0).tolist() == rows


def kept(probabilities: list[float], **options: float) -> set[int]:
    logits = torch.tensor([probabilities], dtype=torch.float64).log().expand(500, -1)
    torch.manual_seed(0)
    chosen = {"temperature": 1.0, "top_k": None, "top_p": None} | options
    return set(next_ids(logits, **chosen).flatten().tolist())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, {0, 1, 2, 3}),
        ({"top_k": 2}, {1, 3}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.6}, {1, 3}),
        ({"top_p": 0.45}, {3}),
        ({"top_p": 1e-9}, {3}),
        ({"top_p": 1.0}, {0, 1, 2, 3}),
        ({"top_k": 3, "top_p": 0.8}, {1, 3}),
        ({"temperature": 0.01}, {3}),
        ({"temperature": 1e-300}, {3}),
        ({"temperature": 0.5, "top_p": 0.6}, {3}),
    ],
    ids=["plain", "k", "k-beyond", "p-crossing", "p-one", "p-tiny", "p-all", "k-then-p", "cold", "coldest", "τ-then-p"],
)
def test_only_what_the_filters_keep_is_drawn(options: dict[str, float], want: set[int]) -> None:
    assert kept([0.1, 0.28, 0.12, 0.5], **options) == want


def test_frequencies_follow_the_renormalized_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(20000, -1)
    drawn = next_ids(logits, 1.0, None, 0.75).flatten()
    assert (drawn == 0).double().mean().item() == pytest.approx(0.625, abs=0.02)
    warm = next_ids(logits, 2.0, None, None).flatten()
    roots = torch.tensor([0.5, 0.3, 0.15, 0.05]).sqrt()
    assert (warm == 3).double().mean().item() == pytest.approx((roots[3] / roots.sum()).item(), abs=0.02)


def test_rows_have_their_own_sets_and_draws() -> None:
    torch.manual_seed(0)
    peaked, flat = torch.tensor([0.0, 0.0, 50.0, 0.0]), torch.zeros(4)
    drawn = next_ids(torch.stack([peaked, flat]).repeat(200, 1), 1.0, None, 0.9).flatten()
    assert set(drawn[0::2].tolist()) == {2}
    assert len(set(drawn[1::2].tolist())) == 4


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_nothing_changes_but_the_ids(lm: TinyTransformerLM, dtype: torch.dtype) -> None:
    lm.train()
    lm.blocks[0].eval()
    modes = [module.training for module in lm.modules()]
    state = {name: value.clone() for name, value in lm.state_dict().items()}
    prompt = torch.tensor([[1, 2, 3]], dtype=dtype)
    out = lm.generate(prompt, 4)
    assert out.dtype == dtype
    assert out.shape == (1, 7)
    assert torch.equal(out[:, :3], prompt)
    assert not out.requires_grad
    assert [module.training for module in lm.modules()] == modes
    assert all(torch.equal(value, lm.state_dict()[name]) for name, value in state.items())


def test_modes_come_back_after_an_exception(lm: TinyTransformerLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("broken")

    monkeypatch.setattr(lm.head, "forward", broken)
    lm.train()
    lm.blocks[1].eval()
    with pytest.raises(RuntimeError, match="broken"):
        lm.generate(torch.tensor([[1]]), 2)
    assert lm.training
    assert not lm.blocks[1].training


def test_no_new_tokens_return_a_copy_of_the_prompt(lm: TinyTransformerLM) -> None:
    prompt = torch.tensor([[1, 2]])
    out = lm.generate(prompt, 0)
    assert torch.equal(out, prompt)
    assert out.data_ptr() != prompt.data_ptr()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_p": float("nan")}, "top_p"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"idx": torch.zeros(1, 0, dtype=torch.int64)}, "prompt"),
        ({"idx": torch.tensor([[17]])}, "17"),
        ({"idx": torch.tensor([[0.0]])}, "float32"),
    ],
    ids=["cold", "nan", "k", "p-zero", "p-large", "p-nan", "negative", "empty", "unknown-id", "float-ids"],
)
def test_a_bad_option_is_refused_by_name(lm: TinyTransformerLM, options: dict[str, object], names: str) -> None:
    arguments = {"idx": torch.tensor([[1]]), "max_new_tokens": 2} | options
    with pytest.raises(ValueError, match=names):
        lm.generate(**arguments)  # type: ignore[arg-type]
