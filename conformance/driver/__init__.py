"""The driver: runs an implementation in a worker process and talks to it in arrays.

The harness side (`session`) imports neither torch nor the implementation. The worker side (`worker`, `operations`,
`frameworks`) imports neither the law nor anything that holds an expected value.
"""
