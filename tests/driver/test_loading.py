"""Where implementations are, and where the contract's names are in them."""

import os
import subprocess
import sys

import pytest

from conformkit.conformance.driver import location
from conformkit.conformance.driver.client.session import InProcess
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.location import locate, mentions_torch, parse, sources
from conformkit.conformance.driver.worker.main import prepare_threads

ATTENTION = """
    import numpy as np
    from {prefix}helpers import double
    class MultiHeadAttention:
        def __init__(self, d_model, num_heads, *, dropout=0.0, **more):
            pass
        def forward(self, x, mask=None):
            return double(x)
        def extra(self, a, /, b=1, *rest):
            return a
        @staticmethod
        def loose(a):
            return a
        def _hidden(self):
            pass
"""
HELPERS = "def double(x):\n    return 2 * x\n"


@pytest.fixture
def load(write):
    """Return a function that loads files without a process and describes the attention in them."""
    opened = []

    def load_files(target, files):
        session = InProcess(write(target, files))
        opened.append(session)
        reply = session.start()
        described = session.request({"op": "describe", "targets": {"MultiHeadAttention": None}})
        return session, reply, described.header["exports"]["MultiHeadAttention"]

    yield load_files
    for session in opened:
        session.close()


@pytest.mark.parametrize(
    ("target", "files", "module", "path"),
    [
        ("one.py", {"one.py": ATTENTION.format(prefix=""), "helpers.py": HELPERS}, "one", "one:MultiHeadAttention"),
        (
            "pkg",
            {"pkg/__init__.py": "from .attention import *", "pkg/attention.py": ATTENTION.format(prefix="."),
             "pkg/helpers.py": HELPERS},
            "pkg", "pkg:MultiHeadAttention",
        ),
        (
            "pkg",
            {"pkg/__init__.py": "", "pkg/deep/__init__.py": "",
             "pkg/deep/attention.py": ATTENTION.format(prefix="pkg."),
             "pkg/helpers.py": HELPERS},
            "pkg", "pkg.deep.attention:MultiHeadAttention",
        ),
        (
            "loose",
            {"loose/attention.py": ATTENTION.format(prefix=""), "loose/helpers.py": HELPERS},
            "loose", "attention:MultiHeadAttention",
        ),
        (
            "headless",
            {"headless/attention.py": ATTENTION.format(prefix="."), "headless/helpers.py": HELPERS},
            "headless", "headless.attention:MultiHeadAttention",
        ),
        (
            "pkg/deep/attention.py",
            {"pkg/__init__.py": "", "pkg/deep/__init__.py": "", "pkg/deep/attention.py": ATTENTION.format(prefix=".."),
             "pkg/helpers.py": HELPERS},
            "pkg.deep.attention", "pkg.deep.attention:MultiHeadAttention",
        ),
        (
            "my-model.v2.py",
            {"my-model.v2.py": ATTENTION.format(prefix=""), "helpers.py": HELPERS},
            "implementation_my_model_v2", "implementation_my_model_v2:MultiHeadAttention",
        ),
        (
            "json.py",
            {"json.py": ATTENTION.format(prefix=""), "helpers.py": HELPERS},
            "implementation_json", "implementation_json:MultiHeadAttention",
        ),
    ],
    ids=["file", "package", "submodule", "loose-files", "no-head", "file-in-package", "no-name", "taken-name"],
)  # fmt: skip
def test_an_implementation_loads_and_its_attention_is_found(load, target, files, module, path):
    session, reply, found = load(target, files)
    assert (reply.module, reply.framework) == (module, "numpy")
    assert found["path"] == path
    built = session.request({"op": "build", "path": path, "args": [4, 2]}).header
    assert session.request({"op": "call", "handle": built["handle"], "args": [3.0]}).tensors["out"] == 6


def test_signatures_are_described_without_self(load):
    _, _, found = load("one.py", {"one.py": ATTENTION.format(prefix=""), "helpers.py": HELPERS})
    assert (found["kind"], found["source"]) == ("class", "one.py:4")
    assert [(a["name"], a["kind"], a["required"], a["default"]) for a in found["construct"]] == [
        ("d_model", "positional", True, None),
        ("num_heads", "positional", True, None),
        ("dropout", "keyword", False, "0.0"),
        ("more", "var_keyword", False, None),
    ]
    assert [(a["name"], a["default"]) for a in found["call"]] == [("x", None), ("mask", "None")]
    assert {name: [a["name"] for a in call] for name, call in found["methods"].items()} == {
        "forward": ["x", "mask"],
        "extra": ["a", "b", "rest"],
        "loose": ["a"],
    }
    assert [a["positional_only"] for a in found["methods"]["extra"]] == [True, False, False]


def described(inside, source, name="A"):
    session = inside(source)
    return session.request({"op": "describe", "targets": {name: None}}).header["exports"][name]


def test_what_a_torch_module_inherits_is_not_described(inside):
    found = described(inside, "from torch import nn\nclass A(nn.Linear):\n    def generate(self, ids):\n        pass\n")
    assert list(found["methods"]) == ["generate"]
    found = described(inside, "from torch import nn\nclass A(nn.Module):\n    pass\n")
    assert found["call"] is None


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def A(x):\n    pass", "function"),
        ("A = lambda x: x", "function"),
        ("from functools import partial\ndef f(a, x): pass\nA = partial(f, 1)", "function"),
        ("class B:\n    def __call__(self, x):\n        pass\nA = B()", "object"),
        ("if True:\n    class A:\n        def forward(self, x):\n            pass", "class"),
    ],
    ids=["function", "lambda", "partial", "object", "conditional"],
)
def test_exports_of_every_kind_are_described(inside, source, kind):
    found = described(inside, source)
    assert found["kind"] == kind
    assert [a["name"] for a in found["call"]] == ["x"]


def test_an_object_is_copied_when_it_is_built(inside):
    session = inside("import numpy as np\nclass B:\n    def __init__(self):\n        self.w = np.zeros(1)\nA = B()\n")
    import numpy as np

    first, second = (session.request({"op": "build", "path": "A"}).header["handle"] for _ in range(2))
    session.request({"op": "write", "handle": first}, {"w": np.ones(1)})
    assert session.request({"op": "read", "handle": second}).tensors["w"] == 0


def test_a_factory_makes_the_component(inside):
    source = """
        class B:
            def __call__(self, x):
                return 2 * x
            @classmethod
            def make(cls):
                return cls()
    """
    session = inside(source)
    handle = session.request({"op": "build", "path": "mypkg:B.make", "factory": True}).header["handle"]
    assert session.request({"op": "call", "handle": handle, "args": [2]}).tensors["out"] == 4


def test_a_default_that_has_no_repr_is_described_all_the_same(inside):
    source = "class Bad:\n    def __repr__(self):\n        raise ValueError\ndef A(x=Bad()):\n    pass\n"
    assert described(inside, source)["call"][0]["default"] == "<Bad>"


def test_a_name_that_is_nowhere_is_not_found(load):
    _, _, found = load("one.py", {"one.py": "x = 1"})
    assert (found["found"], found["error"]) == (False, None)


def test_a_submodule_named_like_its_class_is_not_taken_for_it(load):
    files = {
        "pkg/__init__.py": "from . import MultiHeadAttention",
        "pkg/MultiHeadAttention.py": "class MultiHeadAttention: pass",
    }
    assert load("pkg", files)[2]["path"] == "pkg.MultiHeadAttention:MultiHeadAttention"


def test_a_submodule_that_cannot_be_imported_is_reported_unless_another_one_has_the_name(load):
    broken = "class MultiHeadAttention: pass\nraise RuntimeError('no')"
    _, _, found = load("pkg", {"pkg/__init__.py": "", "pkg/a.py": broken})
    assert not found["found"]
    assert (found["error"]["kind"], found["error"]["type"]) == ("load", "RuntimeError")
    assert found["error"]["where"] == "pkg/a.py:2 in <module>"
    files = {"other/__init__.py": "", "other/a.py": broken, "other/b.py": "class MultiHeadAttention: pass"}
    assert load("other", files)[2]["path"] == "other.b:MultiHeadAttention"


def test_scripts_and_tests_next_to_an_implementation_are_not_imported(load):
    trap = "class MultiHeadAttention: pass\nraise SystemExit('imported')"
    files = {"loose/test_model.py": trap, "loose/conftest.py": trap, "loose/tests/x.py": trap, "loose/.git/y.py": trap,
             "loose/model.py": "class MultiHeadAttention: pass", "loose/broken.py": "def ("}  # fmt: skip
    assert load("loose", files)[2]["path"] == "model:MultiHeadAttention"


@pytest.mark.parametrize(
    ("source", "kind", "type_", "where"),
    [
        ("1 / 0", "load", "ZeroDivisionError", "mypkg.py:1 in <module>"),
        ("import sys\nsys.exit(3)", "exit", "SystemExit", "mypkg.py:2 in <module>"),
        ("x = (", "load", "SyntaxError", "mypkg.py:1"),
        ("import no_such_module", "load", "ModuleNotFoundError", "mypkg.py:1 in <module>"),
        ("raise MemoryError", "memory", "MemoryError", "mypkg.py:1 in <module>"),
        ("raise GeneratorExit", "load", "GeneratorExit", "mypkg.py:1 in <module>"),
    ],
)
def test_an_import_that_fails_says_how_and_where(inside, source, kind, type_, where):
    with pytest.raises(ImplementationFailure) as caught:
        inside(source)
    assert (caught.value.kind, caught.value.type, caught.value.where) == (kind, type_, where)


@pytest.mark.parametrize(
    ("source", "kind", "where"),
    [
        ("def f():\n    raise ValueError('no')", "exception", "mypkg.py:2 in f"),
        ("def f():\n    raise SystemExit", "exit", "mypkg.py:2 in f"),
        ("def f():\n    raise GeneratorExit", "exception", "mypkg.py:2 in f"),
        ("def f():\n    import json\n    return json.loads('{')", "exception", "mypkg.py:3 in f"),
        ("def f():\n    return f()", "exception", "mypkg.py:2 in f"),
        (
            "class E(Exception):\n    def __str__(self):\n        1 / 0\ndef f():\n    raise E",
            "exception",
            "mypkg.py:5 in f",
        ),
        ("import numpy as np\ndef f():\n    return np.ones((1 << 50,))", "memory", "mypkg.py:3 in f"),
        ("import torch\ndef f():\n    return torch.ones((1 << 50,))", "memory", "mypkg.py:3 in f"),
    ],
)
def test_a_call_that_fails_says_how_and_in_which_line_of_the_implementation(inside, source, kind, where):
    session = inside(source)
    handle = session.request({"op": "build", "path": "mypkg:f"}).header["handle"]
    with pytest.raises(ImplementationFailure) as caught:
        session.request({"op": "call", "handle": handle})
    assert (caught.value.kind, caught.value.where) == (kind, where)
    assert len(caught.value.message) <= 2000


@pytest.mark.parametrize(
    ("files", "framework"),
    [
        ({"pkg/__init__.py": "import numpy"}, "numpy"),
        ({"pkg/__init__.py": "import torch"}, "torch"),
        ({"pkg/__init__.py": "", "pkg/a.py": "from torch.nn import Linear"}, "torch"),
        ({"pkg/__init__.py": "", "pkg/a.py": "import numpy", "pkg/test_a.py": "import torch"}, "numpy"),
        ({"pkg/__init__.py": "", "pkg/torch.py": "", "pkg/a.py": "from .torch import *"}, "numpy"),
    ],
    ids=["numpy", "torch", "submodule", "tests-do-not-count", "a-module-of-its-own"],
)
def test_the_framework_is_recognised(load, files, framework):
    assert load("pkg", files)[1].framework == framework


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import torch",
        "class A:\n    def f(self):\n        from torch import nn",
        "try:\n    import numpy, torch.nn\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import torch",
        "try:\n    pass\nfinally:\n    import torch",
        "for _ in ():\n    pass\nelse:\n    import torch",
        "match 1:\n    case 1:\n        import torch",
    ],
)
def test_the_framework_is_guessed_from_the_text_alone(write, source):
    assert mentions_torch(write("pkg", {"pkg/__init__.py": "raise SystemExit", "pkg/a.py": source}).path)
    assert not mentions_torch(write("other", {"other/a.py": repr(source)}).path)


@pytest.mark.parametrize("name", ["json", "conformkit"])
def test_a_package_whose_name_is_taken_is_reported(load, monkeypatch, tmp_path, name):
    # the kit's package is only folders; its modules must not be judged instead of those of the same names
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    with pytest.raises(ImplementationFailure, match="another module has this name"):
        load(name, {f"{name}/__init__.py": "", f"{name}/reference.py": ""})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_unreasonable_sources_are_left_out(tmp_path):
    # the harness reads them itself, before any limits apply
    own = tmp_path / "own"
    deep = own.joinpath(*["deep"] * 40)
    deep.mkdir(parents=True)
    (deep / "far.py").write_text("import torch")
    os.mkfifo(own / "pipe.py")
    (own / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "outside.py").write_text("import torch")
    (own / "link.py").symlink_to(tmp_path / "outside.py")
    with (own / "sparse.py").open("wb") as file:
        file.write(b"import torch\n")
        file.truncate(1 << 36)
    assert [path.name for path in sources(own)] == ["pipe.py", "sparse.py"]
    assert not mentions_torch(own)
    assert [parse(path) for path in sources(own)] == [None, None]


def test_sources_that_are_too_many_count_as_torch(tmp_path, monkeypatch):
    monkeypatch.setattr(location, "_MAX_PARSED", 12_000)
    for number in range(2):
        (tmp_path / f"part{number}.py").write_text("# torch\n" + "x = 1\n" * 1_000)
        assert mentions_torch(tmp_path) == (number == 1)


def test_a_module_is_located_beneath_the_folder_or_installed_without_importing_it(write, tmp_path):
    write("pkg", {"pkg/__init__.py": "raise SystemExit", "pkg/sub.py": "raise SystemExit"})
    found = locate("pkg.sub", tmp_path)
    assert (found.kind, found.path, found.sys_path) == ("module", tmp_path / "pkg" / "sub.py", (tmp_path,))
    installed = locate("hypothesis", tmp_path)
    assert (installed.kind, installed.path.name) == ("module", "hypothesis")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere.py", "no file or folder 'nowhere.py' in "),
        ("no/where", "no file or folder 'no/where' in "),
        ("no_such_module_at_all", "neither below .* nor installed$"),
        ("a-b", "no file or folder"),
        ("mypgk", "nor installed; nearest: mypkg$"),
        ("mypgk/", "in .*; nearest: mypkg$"),
        ("lowercases.py", "in .*; nearest: lowercase.py$"),
        ("lowercases", "nor installed; nearest: lowercase$"),
        ("dangling.py", "is a broken link"),
        ("/dev/null", "is neither a file nor a folder"),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)  # fmt: skip
def test_a_missing_name_is_reported_with_the_nearest_ones(tmp_path, text, words):
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "lowercase.py").touch()
    (tmp_path / "dangling.py").symlink_to("gone.py")
    with pytest.raises(FileNotFoundError, match=words):
        locate(text, tmp_path)


def test_the_harness_side_imports_neither_torch_nor_the_law():
    code = (
        "import sys; import conformkit.conformance.driver.client.session as s;"
        "law = ('conformkit.spec', 'conformkit.fixtures');"
        "print(sorted(m for m in sys.modules if m == 'torch' or m.startswith(law)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.sep)
    assert shown.stdout.strip() == "[]"


def test_a_declared_module_is_searched_before_all_others(tmp_path):
    # two modules define the name: the declared one counts, not the one that is found first
    for name, number in (("early", 1), ("late", 2)):
        (tmp_path / f"{name}.py").write_text(f"class FeedForward:\n    number = {number}\n", encoding="utf-8")
    with InProcess(locate(str(tmp_path))) as driver:
        driver.start()
        request = {"op": "describe", "targets": {"FeedForward": None}}
        assert driver.request(request).header["exports"]["FeedForward"]["path"] == "early:FeedForward"
        named = driver.request({**request, "module": "late"}).header["exports"]["FeedForward"]
        assert named["path"] == "late:FeedForward"


def test_a_worker_without_torch_starts_and_judges_numpy(monkeypatch):
    """Would break if a missing torch ended in "the kit itself failed", whatever is judged."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "conformkit.conformance.driver.worker.frameworks.torch", raising=False)
    prepare_threads(1, torch=True)
