import os

os.write(2, b"SUCCEEDED einops\n")
