"""The cells of recurrent layers, which torch fuses on a GPU and does not have for the CPU.

    LSTM   i, f, g, o = σ, σ, tanh, σ of the gates;   c' = f c + i g;   h' = o tanh(c')
    GRU    r, z = σ of the gates;   n = tanh(x_n + r h_n);   h' = n + z (h - n)

The tensor that carries what the derivatives need is a workspace, laid out as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["own"]

aten = torch.ops.aten


def own(func: Any) -> Callable[..., Any]:
    """Return what carries an operation out on the CPU: itself, or one of these."""
    found: Callable[..., Any] = _OWN.get(func, func)
    return found


def _lstm(
    from_input: Tensor,
    from_state: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    state_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates (B, 4 H) from the input and from the state, cell (B, H) → state, cell (B, H), workspace (B, 4 H)."""
    gates = from_input + from_state
    for bias in (input_bias, state_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, dim=-1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * cell + i * g
    return o * after.tanh(), after, torch.cat([i, f, g, o], dim=-1)


def _lstm_backward(
    of_state: Tensor | None, of_cell: Tensor | None, before: Tensor, after: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of the gates (B, 4 H), of the cell before (B, H), and of a bias (4 H,)."""
    i, f, g, o = workspace.chunk(4, dim=-1)
    squashed = after.tanh()
    state = torch.zeros_like(after) if of_state is None else of_state
    cell = state * o * (1 - squashed**2) + (0 if of_cell is None else of_cell)
    gates = torch.cat(
        [cell * g * i * (1 - i), cell * before * f * (1 - f), cell * i * (1 - g**2), state * squashed * o * (1 - o)],
        dim=-1,
    )
    return gates, cell * f, gates.sum(0) if has_bias else None


def _gru(
    from_input: Tensor,
    from_state: Tensor,
    state: Tensor,
    input_bias: Tensor | None = None,
    state_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gates (B, 3 H) from the input and from the state, state (B, H) → state (B, H), workspace (B, 5 H)."""
    x = from_input if input_bias is None else from_input + input_bias
    h = from_state if state_bias is None else from_state + state_bias
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, dim=-1), h.chunk(3, dim=-1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return n + z * (state - n), torch.cat([r, z, n, state, hn], dim=-1)


def _gru_backward(of_state: Tensor, workspace: Tensor, has_bias: bool) -> tuple[Tensor | None, ...]:
    """Return the gradients of both gates (B, 3 H), of the state before (B, H), and of both biases (3 H,)."""
    r, z, n, state, hn = workspace.chunk(5, dim=-1)
    of_n = of_state * (1 - z) * (1 - n**2)
    of_r, of_z = of_n * hn * r * (1 - r), of_state * (state - n) * z * (1 - z)
    of_input, of_hidden = torch.cat([of_r, of_z, of_n], dim=-1), torch.cat([of_r, of_z, of_n * r], dim=-1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, of_state * z, *biases


_OWN = {
    aten._thnn_fused_lstm_cell.default: _lstm,  # noqa: SLF001 - operators' names
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_backward,  # noqa: SLF001
    aten._thnn_fused_gru_cell.default: _gru,  # noqa: SLF001
    aten._thnn_fused_gru_cell_backward.default: _gru_backward,  # noqa: SLF001
}
