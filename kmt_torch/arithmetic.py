"""In which precision things are computed.

Half precision is widened to float32 before any arithmetic, so that sums neither overflow nor
stagnate; integers and booleans become float64. Matrix products are taken in the full precision of
their dtype, whatever autocast, TF32 or oneDNN are set to: a score is only as good as its last bit.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from kmt_torch.types import Float, Numeric, Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def working_dtype(*tensors: Numeric[Tensor, "..."]) -> torch.dtype:
    """The dtype that arithmetic on these tensors is done in.

    Example:
        >>> working_dtype(torch.ones(1, dtype=torch.bfloat16)), working_dtype(torch.tensor([1]))
        (torch.float32, torch.float64)
    """
    dtype = torch.float32
    for tensor in tensors:
        own = tensor.dtype if tensor.is_floating_point() else torch.float64
        dtype = torch.promote_types(dtype, own)
    return dtype


def widen(*tensors: Numeric[Tensor, "..."]) -> tuple[Tensor, ...]:
    """All tensors in their common working dtype.

    Example:
        >>> [t.dtype for t in widen(torch.ones(2, dtype=torch.float16), torch.ones(2))]
        [torch.float32, torch.float32]
    """
    dtype = working_dtype(*tensors)
    return tuple(tensor.to(dtype) for tensor in tensors)


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """The NumPy dtype of a working dtype.

    Example:
        >>> numpy_dtype(torch.float32)
        dtype('float32')
    """
    return np.dtype(str(dtype).removeprefix("torch."))


def matmul(
    left: Float[Tensor, "*#batch n m"], right: Float[Tensor, "*#batch m p"]
) -> Float[Tensor, "*out n p"]:
    """The matrix product in the full precision of its dtype.

    This holds for the product itself; its gradient is computed later, under the settings of then.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     matmul(torch.tensor([[257.0]]), torch.tensor([[1.0]]))
        tensor([[257.]])
    """
    with full_precision(left.device.type):
        return left @ right


_lock = threading.Lock()
_inside = 0
_restore: Callable[[], None] | None = None


@contextmanager
def full_precision(device: str = "cpu") -> Iterator[None]:
    """A block in which float32 products are float32 products: no autocast, no TF32, no bfloat16.

    Autocast is a setting of the thread. The precision of products is one of the process: it is
    raised when the first thread enters and put back when the last one leaves, so that no thread
    loses precision; one that asks for less has to wait for as long. Change the settings outside.

    Args:
        device: the type of device for which autocast is switched off, as in ``tensor.device.type``.

    Example:
        >>> torch.set_float32_matmul_precision("medium")
        >>> with full_precision():
        ...     torch.get_float32_matmul_precision()
        'highest'
        >>> torch.get_float32_matmul_precision()
        'medium'
        >>> torch.set_float32_matmul_precision("highest")
    """
    global _inside, _restore
    with _lock:
        if _inside == 0:
            _restore = _raise_precision()
        _inside += 1
    try:
        with _without_autocast(device):
            yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _restore is not None:
                _restore()


def _without_autocast(device: str) -> Any:
    """Autocast switched off, on devices that know it."""
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def _raise_precision() -> Callable[[], None]:
    """Set full precision; give back the function that restores what was set before.

    There are two interfaces. The older sets both backends at once and refuses to be read when the
    newer one (torch 2.9) said otherwise; writing it puts both in agreement.
    """
    known: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
    backends = [backend for backend in known if hasattr(backend, "fp32_precision")]
    newer = [backend.fp32_precision for backend in backends]
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = "highest"
    torch.set_float32_matmul_precision("highest")

    def restore() -> None:
        torch.set_float32_matmul_precision(older)
        for backend, before in zip(backends, newer, strict=True):
            # "none" inherits the setting of all backends, and reads as that.
            backend.fp32_precision = "none"
            if backend.fp32_precision != before:
                backend.fp32_precision = before

    return restore


class WideModule(nn.Module):
    """A module whose buffers are never narrower than float32.

    ``half()`` and its like move the weights of a circuit no further than to float32, in which half
    precision is computed anyway: a weight such as a squared scale may overflow float16.

    Example:
        >>> module = WideModule()
        >>> module.register_buffer("weight", torch.tensor(1e10))
        >>> module.half().weight
        tensor(1.0000e+10)
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "WideModule":
        """Convert every buffer with ``fn`` (torch calls this for ``to``, ``half``, ``cuda``...)."""

        def wide(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype.itemsize >= 4 else tensor.to(moved.device, torch.float32)

        super()._apply(wide, recurse)  # type: ignore[no-untyped-call]
        return self
