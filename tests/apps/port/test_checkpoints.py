"""Files of weights: each way in which one can be bad is a sentence that names the file and the tensor; no code runs."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from conformkit.conformance.apps.port import torch_file
from conformkit.conformance.apps.port.checkpoint import ArrayStore, opened_checkpoint
from conformkit.conformance.apps.port.port import port
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.request import PortRequest
from conformkit.conformance.apps.port.safetensors_files import SafetensorsFile, TensorEntry, write_safetensors
from conformkit.conformance.apps.port.source import matched

WEIGHTS = {"a.weight": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.array([1.5, -2.0], dtype=np.float64)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    save_file(WEIGHTS, path)
    return path


def test_a_file_is_read_tensor_by_tensor(file):
    found = opened_checkpoint(file)
    assert found.entries == {"a.weight": TensorEntry("float32", (3, 4)), "b": TensorEntry("float64", (2,))}
    for name, array in WEIGHTS.items():
        np.testing.assert_array_equal(found.read(name), array)


def test_what_is_written_is_what_the_library_reads(tmp_path):
    path = tmp_path / "out.safetensors"
    entries = {name: TensorEntry(array.dtype.name, array.shape) for name, array in WEIGHTS.items()}
    write_safetensors(path, entries, WEIGHTS.items())
    for name, array in load_file(path).items():
        np.testing.assert_array_equal(array, WEIGHTS[name])


@pytest.mark.parametrize("length", [640, 0x0480, 0x4B50])
def test_a_header_whose_length_begins_as_a_pickle_or_an_archive_does_is_read(tmp_path, length):
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path, values = tmp_path / "w.safetensors", np.array([1.5, -2.0], np.float32)
    path.write_bytes(length.to_bytes(8, "little") + header.ljust(length) + values.tobytes())
    np.testing.assert_array_equal(opened_checkpoint(path).read("x"), values)


def test_bfloat16_is_rounded_to_nearest_with_ties_to_even(tmp_path):
    path, values = tmp_path / "half.safetensors", np.array([1.0, 1.00390625, 1.01171875, -3.14159, 1e-30], np.float32)
    write_safetensors(path, {"x": TensorEntry("bfloat16", (5,))}, [("x", values)])
    want = torch.from_numpy(values).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(SafetensorsFile(path).read("x"), want)


def test_a_file_that_could_not_be_written_leaves_nothing_behind(tmp_path):
    def arrays():
        yield "a.weight", WEIGHTS["a.weight"]
        raise OSError(28, "No space left on device")

    path = tmp_path / "out.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match="No space"):
        write_safetensors(path, {n: TensorEntry("float32", a.shape) for n, a in WEIGHTS.items()}, arrays())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cut", [0, 4, 30, -3])
def test_a_file_that_is_cut_off_is_refused_with_what_is_missing(file, cut):
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(Unportable, match=r"w\.safetensors: .*(cut off|ends within (a\.weight|b))"):
        opened_checkpoint(file)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, "x has the number format F8_E4M3"),
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, "x has shape (3,) and 8 bytes, expected 12"),
        ({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}}, "does not say where x is"),
        ({"x": [1]}, "does not say where x is"),
        ([1], "its header is not a JSON object"),
        ({"x": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}}, "does not say where x is"),
        ({"x": {"dtype": "F32", "shape": [2**64], "data_offsets": [0, 8]}}, "does not say where x is"),
        ({"x": {"dtype": "F32", "shape": [2**40] * 9000, "data_offsets": [0, 8]}}, "does not say where x is"),
        ({"x": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, "does not say where x is"),
    ],
    ids=["quantized", "length", "negative", "list", "no-object", "format", "extent", "rank", "flag"],
)
def test_a_header_that_lies_is_refused(tmp_path, header, said):
    head = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 8)
    with pytest.raises(Unportable) as problem:
        opened_checkpoint(path)
    assert said in str(problem.value)


def test_a_pointer_of_git_lfs_says_what_fetches_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", encoding="utf-8")
    with pytest.raises(Unportable, match="Git LFS"):
        opened_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"), (b"<html>404</html>", "it begins with b'<html>40'"),
        ((100 << 20).to_bytes(8, "little"), "its header should have 104,857,600 bytes, and the file has 8 in all"),
        (((100 << 20) + 1).to_bytes(8, "little"), "it begins with"),
        (b"version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS"),
    ],
    ids=["empty", "page", "cut off", "a header of more than 100 MiB", "a pointer"],
)  # fmt: skip
def test_what_is_no_safetensors_file_is_said_to_be_what_it_is(tmp_path, content, said):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(Unportable, match=said):
        opened_checkpoint(path)


def test_an_index_names_files_next_to_it(tmp_path):
    save_file({"a.weight": WEIGHTS["a.weight"]}, tmp_path / "one.safetensors")
    save_file({"b": WEIGHTS["b"]}, tmp_path / "two.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"a.weight": "one.safetensors", "b": "two.safetensors"}}), encoding="utf-8"
    )
    found = opened_checkpoint(tmp_path)
    np.testing.assert_array_equal(found.read("b"), WEIGHTS["b"])


@pytest.mark.parametrize("name", ["model.safetensors", "part.safetensors"])
def test_a_file_that_is_read_is_not_written(tmp_path, name):
    save_file(WEIGHTS, tmp_path / name)
    if name == "part.safetensors":
        index = {"weight_map": dict.fromkeys(WEIGHTS, name)}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    before = (tmp_path / name).read_bytes()
    with pytest.raises(Unportable, match="one of the files that are read"):
        port(PortRequest("mypkg", like="gpt2", weights=tmp_path, out=tmp_path / name))
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"b": "../two.safetensors"}, "expected a file next to it"),
        ({"b": "three.safetensors"}, "its part three.safetensors is not there"),
        ({"c": "one.safetensors"}, "c should be in one.safetensors"),
        (["b"], "it has no object weight_map"),
    ],
    ids=["elsewhere", "absent", "lacking", "list"],
)
def test_an_index_that_does_not_hold_is_refused(tmp_path, places, said):
    save_file({"b": WEIGHTS["b"]}, tmp_path / "one.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    with pytest.raises(Unportable, match=said):
        opened_checkpoint(index)


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("way", ["torch", "pickle", "renamed", "pkl"])
def test_a_pickle_is_never_opened(tmp_path, way):
    mark, path = tmp_path / "run", tmp_path / {"renamed": "w.safetensors", "pkl": "w.pkl"}.get(way, "w.pt")
    if way == "torch":
        torch.save({"a": Bomb(mark)}, path)
    else:
        path.write_bytes(pickle.dumps({"a": Bomb(mark)}))
    with pytest.raises(Unportable, match="pickle"):
        opened_checkpoint(path)
    assert not mark.exists()


def test_a_torch_file_is_read_in_a_worker_in_pieces_whatever_is_nested_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(torch_file, "_ROOM", 100)
    path, big = tmp_path / "w.pt", torch.arange(340, dtype=torch.float32).reshape(17, -1)
    state = {"a.weight": torch.ones(2, 3, dtype=torch.bfloat16), "big": big}
    torch.save({"model": state, "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}}, "iter": 3}, path)
    found = opened_checkpoint(path)
    try:
        assert found.entries == {
            "model.a.weight": TensorEntry("bfloat16", (2, 3)),
            "model.big": TensorEntry("float32", (17, 20)),
        }
        np.testing.assert_array_equal(found.read("model.a.weight"), np.ones((2, 3)))
        np.testing.assert_array_equal(found.read("model.big"), big.numpy())
    finally:
        found.close()


def test_a_folder_with_one_file_of_numpy_is_that_file(tmp_path):
    np.savez(tmp_path / "w.npz", **WEIGHTS)
    np.testing.assert_array_equal(opened_checkpoint(tmp_path).read("b"), WEIGHTS["b"])


def test_a_folder_with_several_files_asks_for_one(tmp_path):
    for name in ("x.safetensors", "y.safetensors"):
        save_file(WEIGHTS, tmp_path / name)
    with pytest.raises(Unportable, match="several files of weights"):
        opened_checkpoint(tmp_path)


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.module.", "model."])
def test_a_prefix_that_all_names_have_is_recognized(prefix):
    given = ArrayStore({prefix + name: array for name, array in WEIGHTS.items()} | {prefix + "mask": np.zeros(1)})
    found = matched(given, ["a.weight", "b"], lambda name: name == "mask")
    np.testing.assert_array_equal(found.read("b"), WEIGHTS["b"])
    assert set(found.entries) == {"a.weight", "b", "mask"}


def test_a_prefix_that_names_lack_is_added():
    found = matched(ArrayStore({"a.weight": np.zeros(1), "b": np.ones(1)}), ["t.a.weight", "t.b"], lambda _: False)
    assert set(found.entries) == {"t.a.weight", "t.b"}
