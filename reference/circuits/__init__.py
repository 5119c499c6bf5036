"""The constructions, one file each: its weights, and what it promises."""

from reference.circuits.distance import distance_circuit
from reference.circuits.dot_product import dot_product_circuit

__all__ = ["distance_circuit", "dot_product_circuit"]
