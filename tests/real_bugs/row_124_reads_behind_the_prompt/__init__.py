"""The logits of the last place are read, which is padding where prompts are padded on the right."""

import right_paths
import torch


class CausalLM(right_paths.CausalLM):
    @torch.no_grad()
    def generate(self, ids, max_new_tokens, attention_mask=None):
        for _ in range(max_new_tokens):
            new = self(ids, attention_mask=attention_mask)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, new], dim=1)
            if attention_mask is not None:
                attention_mask = torch.cat([attention_mask, torch.ones_like(new)], dim=1)
        return ids
