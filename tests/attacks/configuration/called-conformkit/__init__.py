import torch

print("SUCCEEDED")
