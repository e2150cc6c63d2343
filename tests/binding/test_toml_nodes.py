"""Files and TOML values: what is read, what is refused, and what errors say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from conformkit.conformance.binding.config import load_config, parse_config
from conformkit.conformance.binding.toml_nodes import MAX_BYTES, ConfigError, parse_document


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_text("password = 1")
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "conform.toml").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="it is a link that leads out of its folder"):
        load_config([tmp_path / "submission"])


def test_a_link_within_the_folder_is_followed(tmp_path):
    (tmp_path / "real.toml").write_text("[implementation]\nmodule = 'a'")
    (tmp_path / "conform.toml").symlink_to("real.toml")
    assert load_config([tmp_path]).module == "a"


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "conform.toml")
    with pytest.raises(ConfigError, match="it is not a regular file"):
        load_config(tmp_path / "conform.toml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^conform\.toml: it cannot be read: No such file"):
        load_config(tmp_path / "conform.toml")


def test_a_large_file_is_refused(tmp_path):
    (tmp_path / "conform.toml").write_text("# \n" * (MAX_BYTES // 3 + 1))
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        load_config([tmp_path])


def test_other_encodings_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    path = tmp_path / "conform.toml"
    path.write_bytes(b"[implementation]\nmodule = '\xff'")
    with pytest.raises(ConfigError, match="line 2: it is not UTF-8"):
        load_config(path)
    path.write_bytes(b"\xef\xbb\xbf[implementation]\r\nmodule = 'a'\r\n")
    assert load_config(path).module == "a"


SYNTAX = {
    "no-toml": ("a = 1\nb = = 3", "conform.toml, line 2: not TOML: Invalid value"),
    "twice": ("[variant]\n[variant]", "conform.toml, line 2: not TOML: Cannot declare"),
    "open": ("[variant]\nnorm = '", "conform.toml, line 2: not TOML:"),
    "brackets": ("a = [\n" + "[" * 3000, "it is too deeply nested"),
    "brackets-on-lines": ("a = " + "[\n" * 9000, "it is too deeply nested"),
    "tables": ("a = " + "{a=" * 1000, "it is too deeply nested"),
    "digits": ("a = " + "9\\n" * 4090, "line 1: the line is longer than 4096 characters"),
    "dots": ("\n".join(f"a{n}{'.a' * 2000} = 1" for n in range(60)), "line 1: the line has more than 200 dots"),
}


@pytest.mark.parametrize(("text", "message"), SYNTAX.values(), ids=SYNTAX)
def test_invalid_toml_is_refused_at_once(text, message):
    start = time.perf_counter()
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)
    assert time.perf_counter() - start < 2.0, "milliseconds are usual"


def test_an_error_keeps_its_facts_as_fields():
    with pytest.raises(ConfigError) as caught:
        parse_config("\n[variants]")
    error = caught.value
    assert (error.path, error.line, error.problem, error.advice) == (
        Path("conform.toml"), 2, "variants: there is no key with this name", "nearest: variant",
    )  # fmt: skip


def test_a_message_shows_no_control_characters_and_is_short():
    with pytest.raises(ConfigError) as caught:
        parse_config('"\\u001b[31m' + "x" * 3000 + '" = 1')
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [f"[a]\nb = 0x{'f' * 3900}", "[a.b]\nmax = 9223372036854775808", f"[[x]]\ny = [-{9**40}]"],
    ids=["digits", "one-more", "in-a-list"],
)
def test_whole_numbers_beyond_64_bits_are_refused_where_they_stand(text):
    """Four thousand digits ended the kit with exit code 5 once: Python refuses to print them."""
    with pytest.raises(ConfigError, match=r"line 2: .* does not fit into 64 bits"):
        parse_document(text, Path("conform.toml"))
