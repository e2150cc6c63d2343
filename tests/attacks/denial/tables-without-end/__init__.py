import itertools
from collections.abc import Mapping, Sequence

from .wrong import scaled_dot_product_attention as scaled_dot_product_attention


class Endless(Mapping):
    def __len__(self):
        return 3

    def __iter__(self):
        return itertools.count()

    def __getitem__(self, key):
        return [0] * 1000


class EndlessList(list):
    def __iter__(self):
        return itertools.repeat(self)


def deep():
    found = []
    for _ in range(10_000):
        found = [found]
    return found


def train_val_split(ids, fraction=0.9):
    return Endless()


def get_batch(ids, batch_size, block_size):
    return EndlessList([1]), deep()


def sliding_windows(ids, block_size):
    return itertools.count()


def fit_power_law(sizes, losses):
    own = {}
    own["own"] = own
    return own


def rolling_mean(values, window):
    return iter(int, 1)


def exponential_moving_average(values, alpha):
    return deep()
