"""Functions that some scripts need. They are copied into the script, which does not import the kit."""

from __future__ import annotations

__all__ = ["PUT", "SET_GLOBALS", "STRIDED_NUMPY", "STRIDED_TORCH"]

PUT = '''\
def put(item, path, value):
    """Replace the value at a.b.0 below an object, by attributes, keys and indices."""
    keys = item if isinstance(item, dict) else ()
    key = next((k for k in keys if f"{path}.".startswith(f"{k}.")), path.partition(".")[0])
    rest = path[len(str(key)) + 1 :]
    if isinstance(item, (list, tuple)):
        key = int(key) if key.isdigit() else item._fields.index(key)
    indexed = isinstance(item, (dict, list, tuple))
    if rest:
        put(item[key] if indexed else getattr(item, key), rest, value)
    elif isinstance(item, tuple):
        item[key][...] = value
    elif indexed:
        item[key] = value
    elif hasattr(getattr(item, key, None), "data_ptr"):
        getattr(item, key).data = value
    else:
        setattr(item, key, value)
'''
"""For objects that register nothing, so that their arrays are not accessible by name."""

SET_GLOBALS = '''\
def set_globals(module, values):
    """Set globals of a module, keys of dictionaries there, and attributes of objects: the sizes that its code reads."""
    for name, value in values.items():
        *outer, last = name.split(".")
        place = getattr(module, outer[0]) if outer else module
        if isinstance(place, dict):
            place[last] = value
        elif isinstance(place, type):
            setattr(place, last, value)
        else:
            vars(place)[last] = value
'''

STRIDED_TORCH = '''\
def strided(x):
    """The same numbers in memory with gaps, axes in the opposite order."""
    wide = torch.zeros((*reversed(x.shape), 2), dtype=x.dtype)
    wide[..., 0] = x.permute(*reversed(range(x.ndim)))
    return wide[..., 0].permute(*reversed(range(x.ndim)))
'''

STRIDED_NUMPY = '''\
def strided(x):
    """The same numbers in memory with gaps, axes in the opposite order."""
    wide = np.zeros((*reversed(x.shape), 2), dtype=x.dtype)
    wide[..., 0] = x.T
    return wide[..., 0].T
'''
