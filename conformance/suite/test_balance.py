"""Clauses of spec/balance.md. Losses are compared by the implementation's own way to count choices."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import TOLERANCE, close
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.routing import Balance, even_logits, routed, uneven_logits
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.balance import balance_gradient
from conformkit.spec.balance import balance_loss as definition


@clause("BAL-EVEN")
def test_experts_in_equal_use_cost_the_same(balance_loss: Tool) -> None:
    loss = Balance(balance_loss)
    by_positions = loss.positions
    for experts, active in each_of("experts, active", [(2, 1), (4, 1), (5, 2), (8, 2), (16, 4)]):
        close("the loss", loss(even_logits(experts), active), float(active if by_positions else 1))


@clause("BAL-ORACLE")
def test_the_loss_is_shares_times_probabilities(balance_loss: Tool, draw: Draw) -> None:
    loss = Balance(balance_loss)
    for count, experts, active in each_of(
        "count, experts, active", [(1, 3, 1), (6, 4, 1), (7, 5, 2), (12, 8, 3), (5, 3, 3)]
    ):
        logits = uneven_logits(draw, count, experts)
        close("the loss", loss(logits, active), loss.want(logits, active))


@clause("BAL-SHARES")
def test_shares_add_up_to_1(balance_loss: Tool, draw: Draw) -> None:
    loss = Balance(balance_loss)
    for experts, active in each_of("experts, active", [(5, 3), (4, 2)]):
        logits = uneven_logits(draw, 7, experts)
        close("the loss", loss(logits, active), definition(logits, active))


@clause("BAL-STABLE")
def test_large_logits_give_the_exact_loss(balance_loss: Tool, draw: Draw) -> None:
    loss = Balance(balance_loss)
    for scale, shift, active in each_of("scale, shift, active", [(1e4, 0.0, 1), (1.0, 1e3, 2), (1.0, -1e3, 2)]):
        logits = scale * uneven_logits(draw, 6, 4) + shift  # a second choice may be one of probabilities, all 0
        close("the loss", loss(logits, active), loss.want(logits, active))


@clause("BAL-GRAD")
def test_the_gradient_is_that_of_the_probabilities(balance_loss: Tool, draw: Draw) -> None:
    loss = Balance(balance_loss)
    for count, experts, active in each_of("count, experts, active", [(1, 3, 1), (6, 4, 1), (7, 5, 2)]):
        logits = uneven_logits(draw, count, experts)
        want = balance_gradient(logits, active) * (active if loss.positions else 1)
        check_close("the gradient", loss.gradient(logits, active), want, TOLERANCE)


@clause("BAL-SIZES")
def test_the_loss_equals_the_definition_at_every_size(balance_loss: Tool, draw: Draw) -> None:
    loss = Balance(balance_loss)

    def check_sizes(sizes: Case) -> None:
        logits, active = uneven_logits(draw.at(sizes), sizes["count"], sizes["experts"]), sizes["experts_active"]
        close("the loss", loss(logits, active), loss.want(logits, active))

    def nearest(sizes: Case) -> dict[str, int]:
        return {**sizes, "experts_active": min(sizes["experts_active"], sizes["experts"])}

    check_at_sizes(draw, check_sizes, routed, nearest, after="BAL-ORACLE")
