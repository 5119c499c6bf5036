"""The residual stream as a sum of named subspaces.

A token is a row vector, and a ``Slots`` object says which coordinates carry what: the *slots*.
Weight matrices multiply from the right, ``tokens @ matrix``, and are built from slot names, so no
bare column index appears anywhere else. The projection P_x of the papers, which keeps the content
and zeroes the label, is ``slots.projection("content")``.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from reference.arithmetic import cast, exact, zeros
from reference.types import Array, Real
from reference.validation import count


class Slots:
    """Names and widths of the slots of a token, in order.

    Example:
        >>> slots = Slots(content=2, label=3)
        >>> slots.width, slots["label"]
        (5, slice(2, 5, None))
        >>> slots
        Slots(content=2, label=3)
    """

    def __init__(self, **widths: int) -> None:
        """Lay out the slots from left to right.

        Args:
            widths: the width of each slot by name, each at least 1.

        Raises:
            TypeError, ValueError: a width is not an integer >= 1.
        """
        self.widths = {name: count(name, width, 1) for name, width in widths.items()}
        stops = list(accumulate(self.widths.values()))
        starts = [0, *stops[:-1]]
        self._slices = dict(zip(self.widths, map(slice, starts, stops), strict=True))

    @property
    def width(self) -> int:
        """The width of a token."""
        return sum(self.widths.values())

    def __getitem__(self, name: str) -> slice:
        """The columns of a slot; ``KeyError`` names the slots there are."""
        if name not in self._slices:
            raise KeyError(f"no slot {name!r}; the slots are {', '.join(self.widths)}")
        return self._slices[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the slots, in order."""
        return iter(self.widths)

    def __contains__(self, name: object) -> bool:
        """Whether there is a slot of this name."""
        return name in self.widths

    def __eq__(self, other: object) -> bool:
        """Same names and widths in the same order."""
        return isinstance(other, Slots) and list(self.widths.items()) == list(other.widths.items())

    def __hash__(self) -> int:
        """Slots are values."""
        return hash(tuple(self.widths.items()))

    def __repr__(self) -> str:
        """The call that makes these slots."""
        return f"Slots({', '.join(f'{name}={width}' for name, width in self.widths.items())})"

    def read(self, tokens: Real[Array, "n width"], name: str) -> Real[Array, "n slot"]:
        """The content of one slot, as a view.

        Example:
            >>> Slots(content=1, one=1).read(np.array([[5.0, 1.0]]), "content")
            array([[5.]])
        """
        return tokens[:, self[name]]

    def embed(
        self, rows: int, dtype: np.dtype[Any], contents: Mapping[str, Array]
    ) -> Real[Array, "n width"]:
        """Tokens whose slots hold the given contents (shape (rows, width) or broadcastable).

        Slots that are not named are zero.

        Example:
            >>> slots = Slots(content=1, label=2)
            >>> slots.embed(2, np.dtype(float), {"content": np.array([[3.0], [4.0]])})
            array([[3., 0., 0.],
                   [4., 0., 0.]])
        """
        tokens = zeros((rows, self.width), dtype)
        for name, content in contents.items():
            tokens[:, self[name]] = cast(np.asarray(content), dtype)
        return tokens

    def linear_map(
        self, target: "Slots", blocks: Mapping[tuple[str, str], Any]
    ) -> Real[Array, "width target_width"]:
        """The exact matrix that moves slots of ``self`` to slots of ``target``.

        Args:
            target: the slots of the result ``tokens @ matrix``.
            blocks: for a pair (from, to), either a number c, which stands for c times the identity,
                or a matrix of shape (width of from, width of to). Blocks not named are zero.

        Raises:
            ValueError: a block does not fit its slots.

        Example:
            >>> point, head = Slots(content=1, one=1), Slots(direction=1)
            >>> point.linear_map(head, {("content", "direction"): 2})
            array([[Fraction(2, 1)],
                   [Fraction(0, 1)]], dtype=object)
        """
        matrix = zeros((self.width, target.width), np.dtype(object))
        for (source, destination), block in blocks.items():
            rows, columns = self[source], target[destination]
            shape = (self.widths[source], target.widths[destination])
            values = exact(block)
            if values.ndim == 0 and shape[0] == shape[1]:
                values = exact(np.eye(shape[0])) * values
            if values.shape != shape:
                msg = f"block ({source}, {destination}): expected {shape}, got {values.shape}"
                raise ValueError(msg)
            matrix[rows, columns] = values
        return matrix

    def projection(self, *names: str) -> Real[Array, "width width"]:
        """The projection that keeps the named slots and zeroes the others.

        Example:
            >>> Slots(content=1, label=1).projection("content").astype(int)
            array([[1, 0],
                   [0, 0]])
        """
        return self.linear_map(self, {(name, name): 1 for name in names})

    def selector(self, name: str) -> Real[Array, "width slot"]:
        """The matrix that reads one slot: ``tokens @ selector == read(tokens, name)``.

        Example:
            >>> Slots(content=1, one=1).selector("one").astype(int)
            array([[0],
                   [1]])
        """
        return self.linear_map(Slots(**{name: self.widths[name]}), {(name, name): 1})
