"""docs/python.md: every block of it runs; and what it says of free-threaded builds is said by the package, too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_every_block_of_the_guide_runs_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 9
    names: dict[str, object] = {}
    for block in blocks:
        # At its line in the guide, so that a failure points there.
        first = text[: text.index(block)].count("\n")
        exec(compile("\n" * first + block, str(GUIDE), "exec"), names)
    out = capsys.readouterr().out
    assert "running_mean" in out and "total <- total_next" in out


@pytest.mark.parametrize("locked", [True, False])
def test_an_interpreter_without_a_lock_is_warned(locked):
    program = f"import sys; sys._is_gil_enabled = lambda: {locked}; import heirloom"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("RuntimeWarning: heirloom was not tested on free-threaded" in done.stderr) == (not locked)
