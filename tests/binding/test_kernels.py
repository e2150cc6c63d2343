"""What a constructor can be told about attention: found by name and default, or declared, of settings too."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.binding.arguments import Arguments, read_arguments
from conformkit.conformance.binding.kernels import OtherKernel, kernels_of, read_kernels
from conformkit.conformance.binding.toml_nodes import ConfigError, Node


def argument(name: str, default: str | None) -> dict[str, object]:
    return {"name": name, "default": default, "required": default is None}


def node(value: object) -> Node:
    return Node(value, ("kernels",), Path("conform.toml"), {})


def test_the_other_value_of_a_switch_and_words_for_an_argument_that_takes_one() -> None:
    signature = [argument("d_model", None), argument("flash", "True"), argument("use_sdpa", "False")]
    assert [str(kernel) for kernel in kernels_of(signature, {})] == ["flash=False", "use_sdpa=True"]
    words = {kernel.value for kernel in kernels_of([argument("attn_implementation", "'sdpa'")], {})}
    assert {"eager", "manual"} <= words
    assert "sdpa" not in words


def test_a_name_with_another_default_means_something_else() -> None:
    assert kernels_of([argument("flash", "0.1"), argument("attn_impl", "None"), argument("fused", None)], {}) == ()


def test_what_is_declared_must_be_taken_and_may_be_a_setting() -> None:
    found = kernels_of([argument("config", None), argument("flash", "True")], {"flash": [False], "impl": ["plain"]})
    assert found == (
        OtherKernel("flash", False, own=True, declared=True), OtherKernel("impl", "plain", own=False, declared=True)
    )  # fmt: skip


def test_a_setting_goes_into_the_object_that_is_built_and_an_argument_beside_it() -> None:
    construct = read_arguments(
        node({"config": {"object": "mypkg:Config", "arguments": {"width": "d_model"}}}), ("d_model",)
    )
    inside = construct.setting("impl", "plain", own=False).template({"d_model": 8})[1]
    assert inside["config"]["kwargs"] == {"width": 8, "impl": "plain"}
    beside = construct.setting("flash", False, own=True).template({"d_model": 8})[1]
    assert (beside["flash"], beside["config"]["kwargs"]) == (False, {"width": 8})
    assert Arguments().setting("impl", "plain", own=False).template({})[1] == {"impl": "plain"}


@pytest.mark.parametrize("value", [{"flash": []}, {"flash": False}, {"flash": [0.5]}, [True]], ids=str)
def test_another_form_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(ConfigError):
        read_kernels(node(value))
