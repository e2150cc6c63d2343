def test_a_package_is_written_once_and_never_over_anything(conform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = conform("init", "mypkg", "--profile", "lm")
    assert (first.exit_code, first.stderr) == (0, "")
    assert "conform run --impl mypkg --profile lm" in first.stdout
    before = {path: path.read_bytes() for path in (tmp_path / "mypkg").iterdir()}
    assert "class BPETokenizer" in (tmp_path / "mypkg" / "tokenizers.py").read_text()
    again = conform("init", "mypkg")
    assert again.exit_code == 2
    assert "choose another name" in again.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "mypkg").iterdir()} == before


def test_wrong_options_name_the_right_ones(conform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, words in ((("--framework", "tensor"), "torch, numpy"), (("--profile", "vision"), "core, lm")):
        result = conform("init", "mypkg", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_step_on_the_way_to_an_encoder_decoder_is_a_profile_too(conform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = conform("init", "mypkg", "--profile", "milestone3")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "conform run --impl mypkg --profile milestone3" in result.stdout
    stems = {path.stem for path in (tmp_path / "mypkg").iterdir()}
    assert stems == {"__init__", "feed_forward", "positional_encoding", "token_embedding"}
