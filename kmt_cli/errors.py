"""Mistakes of the user: one line each, never a traceback."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from reference import validation


class UserError(Exception):
    """Something that the user can put right; the message is the one line that says what."""


@contextmanager
def named_errors(prefix: str = "") -> Iterator[None]:
    """Turn the errors of input validation, which name their argument, into ``UserError``.

    Example:
        >>> with named_errors("data.npy: "):
        ...     validation.count("k", 0, 1)
        Traceback (most recent call last):
        kmt_cli.errors.UserError: data.npy: k: expected an integer >= 1, got 0
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UserError(f"{prefix}{' '.join(str(error).split())}") from error


def choice(option: str, value: str, options: Iterable[str]) -> str:
    """One of the named options; an error that offers the nearest name otherwise.

    Example:
        >>> choice("--init", "kmeans+", ["kmeans++", "first"])
        Traceback (most recent call last):
        kmt_cli.errors.UserError: --init: expected one of kmeans++, first, got 'kmeans+'; did you \
mean kmeans++?
    """
    with named_errors():
        return validation.choice(option, value, options)


def reason_of(error: OSError) -> str:
    """What the operating system says, without its number and the path.

    Example:
        >>> reason_of(FileNotFoundError(2, "No such file or directory", "a.csv"))
        'no such file or directory'
    """
    text = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
    return text[:1].lower() + text[1:]
