from .transformer import *
