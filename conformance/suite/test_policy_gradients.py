"""Clauses of spec/policy_gradients.md. Conventions are the implementation's own, and always the same one."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, check_finite, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.values import TOLERANCE, close, numbers
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.tuning_losses import Advantages, ClippedLoss
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.policy_gradients import KL_KINDS, policy_slopes
from conformkit.spec.policy_gradients import group_advantages as definition
from conformkit.spec.policy_gradients import kl_estimate as estimate

_CONVENTIONS = ({"unbiased": True}, {"unbiased": False}, {"scaled": False})
_EPSILON = 2e-5
"""How far ε = 1e-3 moves advantages of rewards whose deviation is 100."""


@clause("GADV-CENTER")
def test_advantages_of_a_group_add_up_to_0(group_advantages: Tool, draw: Draw) -> None:
    for groups, size in each_of("groups, size", [(1, 4), (3, 4), (4, 2)]):
        found = Advantages(group_advantages)(_rewards(draw, groups, size))
        largest = float(np.abs(found).max())
        check_close("the mean of each group", found.mean(axis=1), np.zeros(groups), TOLERANCE, scale=largest)


@clause("GADV-GROUP")
def test_only_the_groups_own_rewards_matter(group_advantages: Tool, draw: Draw) -> None:
    advantages = Advantages(group_advantages)
    for groups, size in each_of("groups, size", [(2, 4), (3, 5)]):
        rewards = _rewards(draw, groups, size)
        other = np.concatenate([rewards[:1], 7.0 * rewards[1:] + 300.0])
        before, after = advantages(rewards)[0], advantages(other)[0]
        check_close("the first group's advantages after another's rewards changed", after, before, TOLERANCE)


@clause("GADV-ORDER")
def test_advantages_have_the_order_of_rewards(group_advantages: Tool, draw: Draw) -> None:
    for groups, size in each_of("groups, size", [(1, 3), (3, 4), (2, 6)]):
        rewards = _rewards(draw, groups, size)
        found = Advantages(group_advantages)(rewards)
        steps = np.sqrt(
            (found**2).mean(axis=1, keepdims=True) / np.square(definition(rewards)).mean(axis=1, keepdims=True)
        )
        check_close("the advantages, up to a factor of each group,", found, definition(rewards) * steps, 10 * TOLERANCE)


@clause("GADV-SCALE")
def test_advantages_do_not_depend_on_the_scale_of_rewards(group_advantages: Tool, draw: Draw) -> None:
    advantages, rewards = Advantages(group_advantages), _rewards(draw, 2, 4)
    before = advantages(rewards)
    for factor in each_of("factor", [10.0, 100.0]):
        check_close(
            f"the advantages of {factor:g} times the rewards", advantages(factor * rewards), before, 5 * _EPSILON
        )


@clause("GADV-ORACLE")
def test_advantages_are_those_of_the_definition(group_advantages: Tool, draw: Draw) -> None:
    for groups, size in each_of("groups, size", [(1, 3), (3, 4), (2, 6)]):
        rewards = _rewards(draw, groups, size)
        found = Advantages(group_advantages)(rewards)
        wanted = [definition(rewards, **convention) for convention in _CONVENTIONS]
        near = min(wanted, key=lambda want: float(np.abs(found - want).max()))
        check_close("the advantages", found, near, _EPSILON)


@clause("GADV-EQUAL")
def test_equal_rewards_give_advantages_of_0(group_advantages: Tool) -> None:
    for reward in each_of("reward", [0.0, 1.0, -3.0]):
        found = Advantages(group_advantages)(np.array([[reward] * 4, [0.0, 1.0, 0.0, 1.0]]))
        check_close("the advantages of equal rewards", found[0], np.zeros(4), TOLERANCE, scale=1.0)


@clause("GADV-ONE")
def test_a_group_of_one_gets_a_number(group_advantages: Tool) -> None:
    try:
        found = Advantages(group_advantages)(np.array([[2.0], [0.5]]))
    except ImplementationFailure as refusal:
        check(f"it ended with {refusal.kind}", refusal.kind == "exception")
        return
    check_finite("the advantages of groups of one", found)


@clause("PPO-START")
def test_before_the_first_update_the_loss_is_minus_the_mean_advantage(policy_loss: Tool, draw: Draw) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (2, 4)]):
        logs, gains = -1.0 - draw.uniform(rows, length), draw.values(rows)
        loss = ClippedLoss(policy_loss)(np.stack([logs, logs]), gains, np.ones((rows, length), bool))
        close("the loss", loss, -float(gains.mean()), scale=1.0)


@clause("PPO-MASK")
def test_what_is_outside_of_the_mask_counts_nothing(policy_loss: Tool, draw: Draw) -> None:
    loss, (logs, gains, mask) = ClippedLoss(policy_loss), _update(draw)
    before = loss(logs, gains, mask)
    other = np.where(mask, logs, logs + draw.values(*logs.shape))
    close("the loss after log-probabilities outside of the mask changed", loss(other, gains, mask), before, scale=1.0)


@clause("PPO-RATIO")
def test_the_loss_falls_where_better_answers_become_more_probable(policy_loss: Tool, draw: Draw) -> None:
    loss, old = ClippedLoss(policy_loss), -1.0 - draw.uniform(3, 5)
    everywhere = np.ones(old.shape, bool)
    for gain in each_of("gain", [1.0, -1.0]):
        gains = np.full(3, gain)
        less, more = (loss(np.stack([old + step, old]), gains, everywhere) for step in (-0.1, 0.1))
        right = more < less if gain > 0 else more > less
        sentence = f"the loss is {more:.6g} where log-probabilities grew by 0.1, {less:.6g} where they fell by 0.1"
        check(sentence, right)


@clause("PPO-CLIP")
def test_beyond_the_clip_a_gain_ends(policy_loss: Tool, draw: Draw) -> None:
    _beyond(ClippedLoss(policy_loss), draw, [(1.0, 1.5), (1.0, 0.6), (-1.0, -0.9), (-2.0, -0.5)])


@clause("PPO-WORSE")
def test_beyond_the_clip_a_loss_goes_on(policy_loss: Tool, draw: Draw) -> None:
    _beyond(ClippedLoss(policy_loss), draw, [(1.0, -0.5), (2.0, -0.9), (-1.0, 0.5), (-2.0, 0.9)])


@clause("PPO-ORACLE")
def test_the_clipped_loss_is_that_of_the_definition(policy_loss: Tool, draw: Draw) -> None:
    loss = ClippedLoss(policy_loss)
    for clip in each_of("clip", [0.2, 0.1, 0.4] if policy_loss.offers("clip") else [0.2]):
        loss.check("the loss", *_update(draw), **({"clip": clip} if policy_loss.offers("clip") else {}))


@clause("PPO-GRAD")
def test_the_gradient_flows_through_the_ratio(policy_loss: Tool, draw: Draw) -> None:
    loss, (logs, gains, _) = ClippedLoss(policy_loss), _update(draw)
    mask = np.ones(logs.shape[1:], bool)  # with answers of one length, both means are the same
    want = -policy_slopes(logs[0], logs[1], gains, clip=loss.clip) / mask.sum()
    check_close("the derivative with respect to log_probs", loss.slope(logs, gains, mask), want, TOLERANCE)


@clause("KLEST-SAME")
def test_a_policy_that_is_the_reference_is_0_away(kl_estimate: Tool, draw: Draw) -> None:
    logs = -1.0 - 4 * draw.uniform(2, 5)
    for kind in each_of("kind", _kinds(kl_estimate)):
        found = _estimate(kl_estimate, kind, logs, logs)
        check_close("the estimate", found, np.zeros((2, 5)), TOLERANCE, scale=1.0)


@clause("KLEST-ORACLE")
def test_the_estimate_is_k1_k2_or_k3(kl_estimate: Tool, draw: Draw) -> None:
    logs = -3.0 + draw.values(2, 2, 5)
    for kind in each_of("kind", _kinds(kl_estimate)):
        found = _estimate(kl_estimate, kind, logs[0], logs[1])
        wanted = {name: estimate(logs[0], logs[1], name) for name in ([kind] if kind else KL_KINDS)}
        near = min(wanted, key=lambda name: float(np.abs(found - wanted[name]).max()))
        check_close(f"the estimate {near}", found, wanted[near], TOLERANCE)


def _rewards(draw: Draw, groups: int, size: int) -> Array:
    """Return rewards (prompts, answers) of a deviation of about 100, so that ε is small; those of a group lie apart.

    Two that are nearly equal would leave little but the roundings of their mean.
    """
    places = np.stack([draw.permutation(size) for _ in range(groups)])
    return np.asarray(200.0 * places + 50.0 * np.arange(groups)[:, None] + draw.uniform(groups, size, low=-60, high=60))


def _update(draw: Draw) -> tuple[Array, Array, Array]:
    """Return new and old log-probabilities (2, B, T), advantages (B,) and a mask of answers of unequal length.

    Ratios lie within the clip, above it and below it, for advantages of both signs.
    """
    old = -1.0 - draw.uniform(4, 6)
    steps = np.tile([-0.8, -0.05, 0.05, 0.8, 0.02, -0.6], (4, 1)) + draw.uniform(4, 6, low=-0.03, high=0.03)
    mask = np.arange(6) < np.array([6, 4, 5, 2])[:, None]
    return np.stack([old + steps, old]), np.array([1.5, -0.5, 0.75, -2.0]), mask


def _beyond(loss: ClippedLoss, draw: Draw, cases: list[tuple[float, float]]) -> None:
    """Check the loss of ids whose ratio lies beyond the clip."""
    for gain, step in each_of("gain, step", cases):
        old = -1.0 - draw.uniform(2, 3)
        loss.check("the loss", np.stack([old + step, old]), np.full(2, gain), np.ones((2, 3), bool))


def _kinds(tool: Tool) -> tuple[str, ...]:
    """Return the kinds that can be asked for; "" where there is no choice."""
    return KL_KINDS if tool.offers("kind") else ("",)


def _estimate(tool: Tool, kind: str, logs: Array, reference: Array) -> Array:
    """Return the estimate of that kind at each id."""
    asked = {"kind": kind} if kind else {}
    return numbers("the estimate", tool(log_probs=logs, reference_log_probs=reference, **asked), logs.shape)
