"""As in nanoGPT."""

from nano.model import cosine_schedule, cross_entropy, estimate_loss, get_batch, train_step

__all__ = ["cosine_schedule", "cross_entropy", "estimate_loss", "get_batch", "train_step"]
