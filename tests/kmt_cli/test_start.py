"""The console script where the ``cli`` extra is missing."""

import subprocess
import sys

CODE = """
import sys
sys.modules["typer"] = None  # as if it were not installed
from kmt_cli.start import main
sys.exit(main())
"""


def test_a_missing_extra_is_one_line():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "kmeans-transformer[cli]" in done.stderr
    assert "typer is not installed" in done.stderr
