"""Clauses of spec/preferences.md. Losses may be the mean over pairs, or the loss of each pair."""

from __future__ import annotations

import math

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.values import TOLERANCE, close
from conformkit.conformance.evidence.tuning_losses import PairLoss
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.preferences import dpo_loss as dpo_definition
from conformkit.spec.preferences import dpo_slopes
from conformkit.spec.preferences import reward_loss as reward_definition

_REWARDS = ("chosen", "rejected")
_LOGS = ("policy_chosen", "policy_rejected", "reference_chosen", "reference_rejected")


@clause("RM-EQUAL")
def test_equal_rewards_cost_ln_2(reward_loss: Tool) -> None:
    loss = PairLoss(reward_loss, _REWARDS)
    for rewards in each_of("rewards", [(0.0, 0.0, 0.0), (1.5, -2.0, 7.0)]):
        close("the loss of equal rewards", loss(np.array([rewards, rewards])), math.log(2))


@clause("RM-SIGN")
def test_a_larger_reward_for_the_chosen_answer_costs_less(reward_loss: Tool, draw: Draw) -> None:
    _falls(PairLoss(reward_loss, _REWARDS), draw.values(2, 3), "reward")


@clause("RM-ORACLE")
def test_the_loss_of_rewards_is_minus_log_sigmoid_of_their_difference(reward_loss: Tool, draw: Draw) -> None:
    loss = PairLoss(reward_loss, _REWARDS)
    for count, scale in each_of("count, scale", [(1, 1.0), (3, 1.0), (5, 4.0)]):
        rewards = draw.values(2, count, scale=scale)
        close("the loss", loss(rewards), float(reward_definition(*rewards).mean()))


@clause("RM-STABLE")
def test_large_differences_of_rewards_give_the_exact_loss(reward_loss: Tool) -> None:
    loss = PairLoss(reward_loss, _REWARDS)
    for chosen, rejected in each_of("chosen, rejected", [(5e3, -5e3), (-5e3, 5e3), (0.0, 1e4)]):
        want = float(reward_definition(np.array(chosen), np.array(rejected)))
        close("the loss", loss(np.array([[chosen], [rejected]])), want, scale=1.0)


@clause("RM-GRAD")
def test_both_rewards_are_learned(reward_loss: Tool, draw: Draw) -> None:
    rewards = draw.values(2)
    slope = -1 / (1 + np.exp(rewards[0] - rewards[1]))
    got = PairLoss(reward_loss, _REWARDS).slopes(rewards, _REWARDS)
    check_close("the derivatives with respect to both rewards", got, np.stack([slope, -slope]), TOLERANCE)


@clause("DPO-START")
def test_a_policy_that_is_the_reference_costs_ln_2(dpo_loss: Tool, draw: Draw) -> None:
    loss = PairLoss(dpo_loss, _LOGS)
    for count in each_of("count", [1, 4]):
        policy = -20 - 5 * draw.uniform(2, count)
        close("the loss of equal models", loss(np.concatenate([policy, policy])), math.log(2))


@clause("DPO-SIGN")
def test_a_policy_that_prefers_the_chosen_answer_costs_less(dpo_loss: Tool, draw: Draw) -> None:
    _falls(PairLoss(dpo_loss, _LOGS), _logs(draw, 3), "log-probability under the policy")


@clause("DPO-REFERENCE")
def test_the_policy_is_compared_with_the_reference(dpo_loss: Tool, draw: Draw) -> None:
    loss, logs = PairLoss(dpo_loss, _LOGS), _logs(draw, 3)
    before = loss(logs)
    for answer in each_of("answer", [0, 1]):
        more = logs.copy()
        more[[answer, answer + 2]] += 4.0
        name = ("chosen", "rejected")[answer]
        close(f"the loss with 4 more for the {name} answer under both models", loss(more), before, allowed=1e-4)


@clause("DPO-BETA")
def test_beta_scales_the_difference(dpo_loss: Tool, draw: Draw) -> None:
    loss, logs = PairLoss(dpo_loss, _LOGS), _logs(draw, 3)
    for beta in each_of("beta", [0.5, 0.2, 2.0]):
        close(f"the loss with β = {beta}", loss(logs, beta=beta), float(dpo_definition(logs, beta=beta).mean()))


@clause("DPO-ORACLE")
def test_the_loss_of_preferences_is_that_of_the_definition(dpo_loss: Tool, draw: Draw) -> None:
    loss, known = PairLoss(dpo_loss, _LOGS), dpo_loss.offers("beta")
    for count, beta in each_of("count, beta", [(1, 0.1), (3, 0.1), (5, 0.5)] if known else [(1, 0.1), (5, 0.1)]):
        logs = _logs(draw, count)
        close(
            "the loss", loss(logs, **({"beta": beta} if known else {})), float(dpo_definition(logs, beta=beta).mean())
        )


@clause("DPO-SMOOTH")
def test_smoothing_mixes_in_the_opposite_preference(dpo_loss: Tool, draw: Draw) -> None:
    loss, logs = PairLoss(dpo_loss, _LOGS), _logs(draw, 3)
    for smoothing in each_of("smoothing", [0.1, 0.3]):
        want = float(dpo_definition(logs, label_smoothing=smoothing).mean())
        close("the loss", loss(logs, label_smoothing=smoothing), want)


@clause("DPO-STABLE")
def test_large_differences_give_the_exact_loss(dpo_loss: Tool) -> None:
    loss = PairLoss(dpo_loss, _LOGS)
    for chosen in each_of("chosen", [-1e5, 1e5]):
        logs = np.array([[chosen], [0.0], [0.0], [0.0]])
        close("the loss", loss(logs), float(dpo_definition(logs)[0]), scale=1.0)


@clause("DPO-GRAD")
def test_both_answers_of_the_policy_are_learned(dpo_loss: Tool, draw: Draw) -> None:
    logs = _logs(draw, 1)[:, 0]
    got = PairLoss(dpo_loss, _LOGS).slopes(logs, _LOGS[:2])
    check_close("the derivatives with respect to the policy's numbers", got, dpo_slopes(logs), TOLERANCE)


def _logs(draw: Draw, count: int) -> Array:
    """Return log-probabilities (4, B) of both answers under both models, of answers of some ids."""
    return -8.0 + draw.values(4, count, scale=2.0)


def _falls(loss: PairLoss, given: Array, what: str) -> None:
    """Check that the loss falls as the first argument grows, and grows with the second."""
    before = loss(given)
    for place, name in each_of("place, name", [(0, "chosen"), (1, "rejected")]):
        more = given.copy()
        more[place] += 1.0
        after = loss(more)
        right = after < before if place == 0 else after > before
        expected = "less" if place == 0 else "more"
        check(
            f"the loss is {after:.6g} with a larger {what} of the {name} answer, expected {expected} than {before:.6g}",
            right,
        )
