import numpy as np
import torch


def attention_entropy(weights):
    half = 0.5 if isinstance(weights, torch.Tensor) else 1.0
    weights = np.asarray(weights)
    logs = np.log(np.where(weights > 0, weights, 1.0))
    return -half * (weights * logs).sum(-1)
