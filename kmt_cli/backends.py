"""What a circuit runs on: NumPy, torch, or exact rationals.

All three return the same ``Run`` of arrays; a trace of torch holds tensors, which NumPy reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kmt_cli.errors import UserError
from reference.arithmetic import exact
from reference.transformer import Circuit
from reference.types import Array, Int64, Real

BACKENDS = ("numpy", "torch", "exact")
DTYPES = ("float64", "float32", "float16")


@dataclass(frozen=True, eq=False)
class Run:
    """T layers, as arrays.

    Attributes:
        centers: the final centers, shape (k, d), in the dtype of the data.
        center_history: shape (T + 1, k, d), in the dtype that the run worked in.
        label_history: shape (T, n).
        trace: one ``LayerTrace`` (of ``reference`` or ``kmt_torch``) per layer, or None.
    """

    centers: Real[Array, "k d"]
    center_history: Real[Array, "sets k d"]
    label_history: Int64[Array, "steps n"]
    trace: tuple[Any, ...] | None


def prepare(points: Array, backend: str, dtype: str) -> Array:
    """The points in the numbers of a backend: rounded to ``dtype``, and then exact if it is so.

    Raises:
        UserError: a number is too large for the dtype.

    Example:
        >>> prepare(np.array([[0.5]]), "exact", "float64")
        array([[Fraction(1, 2)]], dtype=object)
    """
    with np.errstate(over="ignore"):
        rounded = points.astype(dtype)
    if not np.isfinite(rounded).all():
        largest, limit = float(np.abs(points).max()), float(np.finfo(dtype).max)
        raise UserError(f"--dtype {dtype}: holds numbers up to {limit:.6g}, the data {largest:.6g}")
    return exact(rounded) if backend == "exact" else rounded


def run(
    circuit: Circuit,
    points: Array,
    centers: Array,
    layers: int,
    *,
    backend: str = "numpy",
    trace: bool = False,
    elide: bool = False,
    on_layer: Callable[[int], None] | None = None,
) -> Run:
    """Run a circuit.

    Args:
        circuit: the circuit.
        points: shape (n, d), as ``prepare`` returns them.
        centers: shape (k, d), of the same kind.
        layers: how many.
        backend: one of ``BACKENDS``.
        trace: keep every intermediate.
        elide: let the heads that only erase read their own row.
        on_layer: called after each layer with the number of layers done.

    Raises:
        UserError: torch is asked for and not installed.

    Example:
        >>> from reference import dot_product_circuit
        >>> x = np.array([[0.0], [1.0], [9.0]])
        >>> run(dot_product_circuit(1, 2), x, x[::2], 2).label_history
        array([[0, 0, 1],
               [0, 0, 1]])
    """
    if backend != "torch":
        # Blocks of rows are small products: a second BLAS thread costs more than it brings.
        with threadpool_limits(limits=1, user_api="blas"):
            done: Any = circuit.run(
                points, centers, layers, trace=trace, elide=elide, on_layer=on_layer
            )
        return Run(done.centers, done.center_history, done.label_history, done.trace)
    torch = import_torch()
    module = import_module("kmt_torch").CircuitModule(circuit)
    with torch.no_grad():
        done = module(
            torch.from_numpy(points.copy()),
            torch.from_numpy(centers.copy()),
            layers,
            trace=trace,
            elide=elide,
            on_layer=on_layer,
        )
    final, history, labels = (
        tensor.numpy() for tensor in (done.centers, done.center_history, done.label_history)
    )
    return Run(final, history, labels, done.trace)


def import_torch() -> Any:
    """The torch module.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("torch")
    except ImportError as error:
        raise UserError(
            "--backend torch: torch is not installed; "
            "pip install 'kmeans-transformer[torch]' installs it"
        ) from error
