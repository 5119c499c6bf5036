"""The circuits of ``reference`` as torch modules: batches, devices, gradients, visible attention.

The weights come from a ``reference.Circuit``; the execution is written anew, densely, so that
every attention map can be looked at. Start at ``CircuitModule``.
"""

from kmt_torch.arithmetic import full_precision
from kmt_torch.attention import attention
from kmt_torch.feedforward import FeedForward
from kmt_torch.normalizers import normalize
from kmt_torch.norms import layer_norm, rms_norm
from kmt_torch.scores import dot_product, negative_squared_distance, qk_norm
from kmt_torch.transformer import CircuitModule, Run

__all__ = [
    "CircuitModule",
    "FeedForward",
    "Run",
    "attention",
    "dot_product",
    "full_precision",
    "layer_norm",
    "negative_squared_distance",
    "normalize",
    "qk_norm",
    "rms_norm",
]
