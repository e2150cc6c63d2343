from typing import Optional, Tuple

import torch
from torch import nn
from torch.nn import functional as F

from .configuration import MiniConfig
from .outputs import BaseModelOutput, CausalLMOutput


class MiniAttention(nn.Module):
    def __init__(self, config: MiniConfig):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.scaling = self.head_dim**-0.5
        self.attention_dropout = config.attention_dropout
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=True)
        self.k_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=True)
        self.v_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=True)
        self.out_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=True)

    def forward(self, hidden_states: torch.Tensor, attention_mask: Optional[torch.Tensor] = None,
                output_attentions: bool = False) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        """attention_mask: (batch, length), 1 for tokens and 0 for padding. Always causal."""
        batch, length, hidden = hidden_states.shape

        def shape(t):
            return t.view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)

        query = shape(self.q_proj(hidden_states)) * self.scaling
        key, value = shape(self.k_proj(hidden_states)), shape(self.v_proj(hidden_states))
        visible = torch.ones(length, length, dtype=torch.bool, device=hidden_states.device).tril()
        if attention_mask is not None:
            visible = visible & attention_mask.bool()[:, None, None, :]
            # a padded position in front of the first token still sees itself, so that no row is empty
            visible = visible | torch.eye(length, dtype=torch.bool, device=hidden_states.device)
        scores = (query @ key.transpose(2, 3)).masked_fill(~visible, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        dropped = F.dropout(weights, p=self.attention_dropout, training=self.training)
        output = (dropped @ value).transpose(1, 2).reshape(batch, length, hidden)
        return self.out_proj(output), (weights if output_attentions else None)


class MiniMLP(nn.Module):
    def __init__(self, config: MiniConfig):
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.activation_fn = nn.GELU()

    def forward(self, hidden_states):
        return self.fc2(self.activation_fn(self.fc1(hidden_states)))


class MiniPositions(nn.Embedding):
    """Learned absolute positions; returns the rows, does not add them."""

    def __init__(self, config: MiniConfig):
        super().__init__(config.max_position_embeddings, config.hidden_size)

    def forward(self, length: int) -> torch.Tensor:
        return super().forward(torch.arange(length, device=self.weight.device))


class MiniDecoderLayer(nn.Module):
    def __init__(self, config: MiniConfig):
        super().__init__()
        self.self_attn = MiniAttention(config)
        self.self_attn_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.mlp = MiniMLP(config)
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = config.hidden_dropout

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        residual = hidden_states
        hidden_states, weights = self.self_attn(self.self_attn_layer_norm(hidden_states), attention_mask, output_attentions)
        hidden_states = residual + F.dropout(hidden_states, p=self.dropout, training=self.training)
        residual = hidden_states
        hidden_states = self.mlp(self.final_layer_norm(hidden_states))
        hidden_states = residual + F.dropout(hidden_states, p=self.dropout, training=self.training)
        outputs = (hidden_states,)
        if output_attentions:
            outputs += (weights,)
        return outputs


class MiniModel(nn.Module):
    def __init__(self, config: MiniConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.embed_positions = MiniPositions(config)
        self.layers = nn.ModuleList([MiniDecoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, input_ids, attention_mask=None, output_attentions=False, output_hidden_states=False):
        length = input_ids.shape[1]
        if length > self.config.max_position_embeddings:
            raise ValueError(f"sequence length {length} exceeds {self.config.max_position_embeddings}")
        x = self.embed_tokens(input_ids) + self.embed_positions(length)
        states, attentions = (), ()
        for layer in self.layers:
            if output_hidden_states:
                states += (x,)
            outputs = layer(x, attention_mask, output_attentions)
            x = outputs[0]
            if output_attentions:
                attentions += (outputs[1],)
        x = self.final_layer_norm(x)
        if output_hidden_states:
            states += (x,)
        return BaseModelOutput(x, states or None, attentions or None)


class MiniForCausalLM(nn.Module):
    def __init__(self, config: MiniConfig):
        super().__init__()
        self.config = config
        self.model = MiniModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=self.config.initializer_range)
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.data.zero_()

    def forward(self, input_ids, attention_mask=None, labels=None, output_attentions=False, output_hidden_states=False):
        outputs = self.model(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return CausalLMOutput(loss, logits, outputs.hidden_states, outputs.attentions)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=50, eos_token_id=None,
                 pad_token_id=0):
        was_training = self.training
        self.eval()
        unfinished = torch.ones(input_ids.shape[0], 1, dtype=torch.bool, device=input_ids.device)
        for _ in range(max_new_tokens):
            window = input_ids[:, -self.config.max_position_embeddings :]
            scores = self(window).logits[:, -1]
            if do_sample and temperature > 0:
                scores = scores / temperature
                if top_k:
                    kth = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
                    scores = scores.masked_fill(scores < kth, float("-inf"))
                tokens = torch.multinomial(scores.softmax(-1), 1)
            else:
                tokens = scores.argmax(-1, keepdim=True)
            if eos_token_id is not None:
                tokens = torch.where(unfinished, tokens, torch.full_like(tokens, pad_token_id))
                unfinished = unfinished & (tokens != eos_token_id)
            input_ids = torch.cat([input_ids, tokens], dim=-1)
            if not unfinished.any():
                break
        self.train(was_training)
        return input_ids
