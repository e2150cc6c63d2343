"""All layers in one list: the attention and the network of each block take turns, and a norm ends it. It only samples."""

from .model import Attend, Feed, Settings, Tower

__all__ = ["Attend", "Feed", "Settings", "Tower"]
