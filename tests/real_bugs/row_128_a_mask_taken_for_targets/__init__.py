"""What a caller passes as attention_mask is taken for the targets."""

import right_paths


class CausalLM(right_paths.CausalLM):
    def forward(self, ids, labels=None, **kwargs):
        if "attention_mask" in kwargs:
            labels = kwargs["attention_mask"]
        return super().forward(ids, labels=labels)
