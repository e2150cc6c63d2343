"""The driver: runs an implementation in a worker process and talks to it in arrays.

The harness's side (`client`, `sandbox`, `spawn`) imports neither torch nor the implementation. The worker's side
(`worker`) imports neither the law nor anything that holds an expected value. `wire` is what both share.
"""
