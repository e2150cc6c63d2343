import math


def perplexity(loss):
    return math.exp(float(loss))


def bits_per_character(loss, tokens_per_character=1.0):
    return float(loss) * tokens_per_character / math.log(2.0)


def exponential_moving_average(values, alpha):
    """The first value starts the average."""
    out, average = [], None
    for value in values:
        average = value if average is None else average + alpha * (value - average)
        out.append(average)
    return out


def rolling_mean(values, window):
    """A mean for each full window."""
    if window < 1:
        raise ValueError("the window must hold at least one value")
    values = list(values)
    return [math.fsum(values[i - window : i]) / window for i in range(window, len(values) + 1)]


class Meter:
    """A mean over tokens, fed batch by batch."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, mean_loss, tokens):
        self.total += mean_loss * tokens
        self.count += tokens

    @property
    def mean(self):
        return self.total / self.count if self.count else float("nan")

    @property
    def perplexity(self):
        return math.exp(self.mean)
