import io

from rich.console import Console

from conformkit.conformance.apps.port import terminal


def test_long_lines_are_wrapped_below_their_beginning_without_blanks_at_the_end(monkeypatch):
    """Would break if lines were padded to the width: copied from a terminal, or in a pipe, they end in blanks."""
    monkeypatch.setattr(terminal, "lines", lambda _: iter(["[a] → [b]", "  code: " + "words " * 30]))
    stream = io.StringIO()
    terminal.write(None, Console(width=60, file=stream))
    first, *rest = stream.getvalue().splitlines()
    assert first == "[a] → [b]"
    assert len(rest) > 2
    for line in rest:
        assert line == f"  {line.strip()}"
        assert len(line) <= 60
