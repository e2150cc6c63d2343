import os

os.write(2, b"SUCCEEDED numpy\n")
