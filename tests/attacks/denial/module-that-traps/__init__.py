import sys
import types

import torch


class Anything(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *_, **__):
        return self


sys.modules[__name__] = Anything(__name__)
