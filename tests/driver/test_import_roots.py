"""Code is imported as it is for its author: from the folder that its imports mean, above files without a package."""

import pytest

from conformkit.conformance.driver.client.session import InProcess
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.location import locate, mentions_torch

DOUBLE = "def double(x):\n    return 2 * x\n"
USED = "def scaled_dot_product_attention(q, k, v, mask=None):\n    return double(q)\n"


@pytest.fixture
def found(write):
    """Return a function that loads files and says where the contract's function is in them."""
    opened = []

    def where(target, files):
        opened.append(InProcess(write(target, files)))
        opened[-1].start()
        described = opened[-1].request({"op": "describe", "targets": {"scaled_dot_product_attention": None}})
        return described.header["exports"]["scaled_dot_product_attention"]["path"]

    yield where
    for session in opened:
        session.close()


@pytest.mark.parametrize(
    ("target", "files", "path"),
    [
        ("repo/nets/one.py", {"repo/helpers.py": DOUBLE, "repo/nets/one.py": "from helpers import double\n" + USED},
         "one:scaled_dot_product_attention"),
        ("repo/nets/one.py",
         {"repo/src/hlp/__init__.py": DOUBLE, "repo/nets/one.py": "from hlp import double\n" + USED},
         "one:scaled_dot_product_attention"),
        ("repo/nets", {"repo/nets/sub/hlp2.py": DOUBLE, "repo/nets/sub/one.py": "from hlp2 import double\n" + USED},
         "sub.one:scaled_dot_product_attention"),
        ("repo/nets/one.py", {"repo/up.py": DOUBLE, "repo/nets/one.py": "from ..up import double\n" + USED},
         "repo.nets.one:scaled_dot_product_attention"),
        ("repo/pkg", {"repo/up.py": DOUBLE, "repo/pkg/__init__.py": "from ..up import double\n" + USED},
         "repo.pkg:scaled_dot_product_attention"),
        ("repo/nets/one.py", {"repo/nets/near.py": DOUBLE, "repo/nets/one.py": "from .near import double\n" + USED},
         "nets.one:scaled_dot_product_attention"),
    ],
    ids=["root-of-a-repository", "src", "beside-a-file-below", "above-a-file", "above-a-package", "beside-a-file"],
)  # fmt: skip
def test_imports_resolve_where_their_author_runs_them(found, target, files, path):
    """Catches roots that are only the file's own folder, and relative imports without a package."""
    assert found(target, {"repo/.git/x": "", **files}) == path


def test_a_folder_called_like_a_library_is_not_imported_instead(tmp_path):
    """Catches a search for names that are installed: the folder above would shadow NumPy."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "one.py").write_text("import numpy as np\nimport notthere\n")
    assert tmp_path.resolve() not in locate(str(tmp_path / "numpy" / "one.py")).sys_path


def test_a_submission_is_not_searched_for_beyond_itself(tmp_path):
    """Catches a submission that imports the files of another one."""
    (tmp_path / "other.py").write_text(DOUBLE)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "one.py").write_text("from other import double\n")
    file = str(tmp_path / "mine" / "one.py")
    assert tmp_path.resolve() in locate(file).sys_path
    assert tmp_path.resolve() not in locate(file, beyond=False).sys_path


def test_a_missing_library_raises_all_the_same(write):
    """Catches a stand-in for what a component computes with."""
    session = InProcess(write("one.py", {"one.py": "import notthere\n"}))
    with pytest.raises(ImplementationFailure, match="notthere"):
        session.start()


@pytest.mark.parametrize(
    ("source", "is_torch"),
    [
        ("def f(x):\n    return x.masked_fill(x == 0, 1).softmax(-1)\n", True),
        ("import numpy as np\ndef f(x):\n    return x.permute(0)\n", False),
        ("def f(x):\n    return x.transpose(0, 1)\n", False),
    ],
    ids=["methods-of-tensors", "numpy", "says-nothing"],
)
def test_code_of_tensors_is_torch_without_an_import(write, source, is_torch):
    """Catches code that is taken for NumPy since it only calls methods of what it gets."""
    assert mentions_torch(write("one.py", {"one.py": source}).path) is is_torch
