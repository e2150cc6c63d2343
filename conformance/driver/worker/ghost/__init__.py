"""A torch device that exists in name only: values are computed on the CPU, mixing devices raises as CUDA raises."""
