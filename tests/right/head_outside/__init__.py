"""A trunk of layers that returns states, and functions that apply a head to them: training and sampling hold both."""

from .steps import next_ids, train_step
from .trunk import Trunk
