"""The console script, which answers in one line where the ``cli`` extra is not installed."""

import sys


def main() -> int:
    """Run ``kmt``.

    Returns:
        The exit code of ``kmt_cli.main.main``, or 2 if what it needs is not installed.

    Example:
        >>> arguments, sys.argv = sys.argv, ["kmt", "run", "iris", "-k", "0"]
        >>> main()
        2
        >>> sys.argv = arguments
    """
    try:
        from kmt_cli.main import main as run
    except ModuleNotFoundError as error:
        needs = "the command needs the cli extra: pip install 'kmeans-transformer[cli]'"
        print(f"kmt: {needs} ({error.name} is not installed)", file=sys.stderr)
        return 2
    return run()
