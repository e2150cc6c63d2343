import torch
import torch.nn.functional as F

from .optim import clip_grad_norm


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    """logits (..., V), targets (...): the mean over what is not ignored, 0 where nothing counts"""
    total = F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        targets.reshape(-1),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction="sum",
    )
    return total / (targets != ignore_index).sum().clamp(min=1)


def train_step(model, optimizer, x, y, max_norm=None):
    model.train()
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    if max_norm is not None:
        clip_grad_norm(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach().item()


def evaluate(model, batches):
    """Mean loss over all targets of all batches."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    loss_sum, count = 0.0, 0
    try:
        with torch.no_grad():
            for x, y in batches:
                n = int((y != -100).sum())
                loss_sum += float(cross_entropy(model(x), y)) * n
                count += n
    finally:
        for module, mode in modes:
            module.training = mode
    if count == 0:
        raise ValueError("no targets to evaluate on")
    return loss_sum / count


def save_checkpoint(path, model, optimizer, step):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)


def load_checkpoint(path, model, optimizer):
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["step"]
