"""A transformer layer that is one step of Lloyd's k-means, to read and to run.

The bottom of the project: NumPy (and jaxtyping for the shapes in signatures) and nothing else.
Start at ``dot_product_circuit`` and ``lloyd_step``: one layer of the first is one call of the
second.
"""

from reference.arithmetic import exact
from reference.attention import attention
from reference.bounds import required_gamma, required_sparsemax_gamma, smoothed_objective
from reference.circuits import distance_circuit, dot_product_circuit
from reference.classical.lloyd import (
    Trajectory,
    kmeans_plus_plus,
    lloyd,
    lloyd_step,
    objective,
    predict,
    random_centers,
    update_centers,
)
from reference.codes import binary_codes, one_hot_codes, signed_binary_codes
from reference.feedforward import FeedForward
from reference.normalizers import (
    gumbel_max,
    gumbel_noise,
    hardmax,
    linear,
    softmax,
    sparsemax,
    top_m,
)
from reference.norms import layer_norm, rms_norm
from reference.scores import QKNorm, dot_product, negative_squared_distance
from reference.slots import Slots
from reference.transformer import Circuit, Run, format_matrix

__all__ = [
    "Circuit",
    "FeedForward",
    "QKNorm",
    "Run",
    "Slots",
    "Trajectory",
    "attention",
    "binary_codes",
    "distance_circuit",
    "dot_product",
    "dot_product_circuit",
    "exact",
    "format_matrix",
    "gumbel_max",
    "gumbel_noise",
    "hardmax",
    "kmeans_plus_plus",
    "layer_norm",
    "linear",
    "lloyd",
    "lloyd_step",
    "negative_squared_distance",
    "objective",
    "one_hot_codes",
    "predict",
    "random_centers",
    "required_gamma",
    "required_sparsemax_gamma",
    "rms_norm",
    "signed_binary_codes",
    "smoothed_objective",
    "softmax",
    "sparsemax",
    "top_m",
    "update_centers",
]
