from .model import Attention, Block, Mixtral, MoeLayer
