"""No false alarm in profile finetune: right losses, differently written, break no binding clause."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level
from tests.right.false_alarms import alarms, right_ones

OTHERS = [Path(impl) for impl in right_ones("finetune") if impl != "conformkit.reference"]


@pytest.mark.parametrize("impl", OTHERS, ids=lambda impl: impl.stem)
def test_right_code_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    found = [f"{result.clause.id}: {result.message}" for _, result in alarms(str(impl), [0], "finetune", warm=warm)]
    assert not found, "\n".join(found)


NAMES = """
import torch
import torch.nn.functional as F

class GRPOLoss(torch.nn.Module):
    def forward(self, logps):
        return logps.mean()

def get_batch_logps(logits, labels, loss_mask):
    logits, labels, loss_mask = logits[:, :-1], labels[:, 1:], loss_mask[:, 1:]
    return (torch.log_softmax(logits, -1).gather(2, labels.unsqueeze(-1)).squeeze(-1) * loss_mask).sum(-1)

class PairWiseLoss(torch.nn.Module):
    def forward(self, chosen_reward, reject_reward):
        return -F.logsigmoid(chosen_reward - reject_reward).mean()

class DPOLoss(torch.nn.Module):
    def __init__(self, beta, label_smoothing=0.0):
        super().__init__()
        self.beta, self.eps = beta, label_smoothing

    def forward(self, policy_chosen_logps, policy_rejected_logps, ref_chosen_logps, ref_rejected_logps):
        h = policy_chosen_logps - policy_rejected_logps - (ref_chosen_logps - ref_rejected_logps)
        losses = -F.logsigmoid(self.beta * h) * (1 - self.eps) - F.logsigmoid(-self.beta * h) * self.eps
        return losses, self.beta * (policy_chosen_logps - ref_chosen_logps).detach()

def dpo_values(policy_chosen_logps, policy_rejected_logps, ref_chosen_logps, ref_rejected_logps, beta):
    h = policy_chosen_logps - policy_rejected_logps - (ref_chosen_logps - ref_rejected_logps)
    rewards = beta * (policy_chosen_logps - ref_chosen_logps).detach()
    return -F.logsigmoid(beta * h), rewards, rewards - 1

def compute_grpo_advantages(rewards, num_generations):
    g = rewards.view(-1, num_generations)
    return ((g - g.mean(1, keepdim=True)) / (g.std(1, keepdim=True) + 1e-6)).view(-1)

def dapo_policy_loss(logprobs, old_logprobs, advantages, completion_mask):
    ratio = torch.exp(logprobs - old_logprobs)
    gained = torch.minimum(ratio * advantages[:, None], ratio.clamp(0.8, 1.28) * advantages[:, None])
    return -(gained * completion_mask).sum() / completion_mask.sum()
"""
FOUND = {"sequence_log_probs", "reward_loss", "dpo_loss", "group_advantages", "policy_loss"}


def test_functions_with_the_names_of_public_trainers_are_found_and_a_class_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text(NAMES, encoding="utf-8")
    report = run(RunRequest(impl=str(tmp_path / "losses.py"), processes=1, discover=True, widens=True))
    assert report.profile == "finetune"
    assert {result.clause.component for result in report.results if result.verdict is Verdict.PASS} == FOUND
    assert not [result for result in report.results if result.verdict.red and result.clause.level is Level.MUST]
    assert not report.unusable

    wrong = NAMES.replace("-F.logsigmoid(self.beta * h) *", "-self.beta * F.logsigmoid(h) *")
    assert red(tmp_path, wrong) == {"DPO-START"}

    without = NAMES.replace("dapo_policy_loss", "_dapo")
    assert "GRPOLoss" in str(judged(tmp_path, without).unusable)


def red(folder: Path, text: str) -> set[str]:
    binding = (result for result in judged(folder, text).results if result.clause.level is Level.MUST)
    return {result.clause.id for result in binding if result.verdict.red}


def judged(folder: Path, text: str) -> Report:
    (folder / "losses.py").write_text(text, encoding="utf-8")
    return run(RunRequest(impl=str(folder / "losses.py"), profile="finetune", processes=1, discover=True))
