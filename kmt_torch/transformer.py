"""Circuits as modules: attention and feed-forward blocks, stacked into a transformer.

    attention block      tokens <- tokens + sum over heads of attention(tokens Q, sources K) V
    feed-forward block   tokens <- tokens + act(tokens W1 + b1) W2 + b2

Two streams of tokens, *points* and *centers*, each with its own slots; the same weights at every
layer. What the circuits are, and what they promise, is said in ``reference.circuits``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

import reference
from kmt_torch import validation
from kmt_torch.arithmetic import WideModule, matmul, numpy_dtype
from kmt_torch.attention import scaled_scores, weighted_mean
from kmt_torch.feedforward import FeedForward, to_tensor
from kmt_torch.normalizers import first_argmax, normalize, numerators, torch_normalizer
from kmt_torch.scores import torch_score
from kmt_torch.types import Float, Int64, Numeric, Tensor
from reference.normalizers import Hardmax
from reference.transformer import AttentionBlock, Head, LayerTrace
from reference.transformer import Source as ReferenceSource
from reference.validation import count, squared_relu_scale

Streams = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class HeadTrace:
    """What one head did in one layer.

    The maps are computed when asked for, so that a trace does not hold them.

    Attributes:
        head: the head.
        queries: what its queries were, shape (..., q, h).
        keys: all keys, the sources one below the other, shape (..., K, h).
        values: all values, shape (..., K, width).
        key_weights: shape (..., K), or None where all are 1.
        message: what it added, shape (..., q, width).
    """

    head: "AttentionHead"
    queries: Float[Tensor, "*batch q h"]
    keys: Float[Tensor, "*batch K h"]
    values: Float[Tensor, "*batch K width"]
    key_weights: Float[Tensor, "*batch K"] | None
    message: Float[Tensor, "*batch q width"]

    @property
    def scores(self) -> Float[Tensor, "*batch q K"]:
        """gamma * score of every key for every query, shape (..., q, K)."""
        return scaled_scores(self.queries, self.keys, self.head.score, self.head.gamma)

    @property
    def weights(self) -> Float[Tensor, "*batch q K"]:
        """The attention map, shape (..., q, K): rows sum to 1."""
        w = None if self.key_weights is None else self.key_weights[..., None, :]
        scores = self.head.score(self.queries, self.keys)
        return normalize(self.head.normalizer, scores, w, self.head.gamma)


@dataclass(frozen=True, eq=False)
class BlockTrace:
    """What one block did in one layer.

    Attributes:
        name: the block's name.
        stream: the stream it wrote.
        before: the stream's tokens before, shape (..., q, width).
        after: and after.
        heads: the heads by name; empty for a feed-forward block.
    """

    name: str
    stream: str
    before: Float[Tensor, "*batch q width"]
    after: Float[Tensor, "*batch q width"]
    heads: dict[str, HeadTrace]


@dataclass(frozen=True, eq=False)
class Run:
    """The result of T layers.

    Attributes:
        centers: the final centers, shape (..., k, d), in the dtype of the input.
        center_history: all center sets, shape (T + 1, ..., k, d), in the dtype that the run worked
            in; row 0 holds the centers that went in.
        label_history: the labels that each layer wrote, shape (T, ..., n), int64. They belong to
            the centers that went *into* that layer.
        trace: one ``LayerTrace`` per layer, or None when none was asked for.

    Example:
        >>> Run(torch.ones(1, 1), torch.ones(2, 1, 1), torch.tensor([[0]]), None).labels
        tensor([0])
    """

    centers: Float[Tensor, "*batch k d"]
    center_history: Float[Tensor, "sets *batch k d"]
    label_history: Int64[Tensor, "steps *batch n"]
    trace: tuple[LayerTrace, ...] | None

    @property
    def labels(self) -> Int64[Tensor, "*batch n"]:
        """The labels of the last layer, shape (..., n)."""
        if len(self.label_history) == 0:
            raise ValueError("labels: a run of 0 layers has none")
        return self.label_history[-1]


class Source(WideModule):
    """Where a head takes keys and values from: the buffers ``key`` and ``value``."""

    key: Tensor
    value: Tensor

    def __init__(self, source: ReferenceSource) -> None:
        super().__init__()
        self.stream, self.weighted = source.stream, source.weighted
        self.register_buffer("key", to_tensor(source.key))
        self.register_buffer("value", to_tensor(source.value))


class AttentionHead(WideModule):
    """One attention head: the buffer ``query``, and a ``Source`` by the name of each stream read.

    Example:
        >>> module = CircuitModule(reference.dot_product_circuit(d=1, k=2))
        >>> module.assign.query.T
        tensor([[1., 0., 0., 0., 0., 0.],
                [0., 1., 0., 0., 0., 0.]], dtype=torch.float64)
    """

    query: Tensor

    def __init__(self, head: Head) -> None:
        super().__init__()
        torch_normalizer(head.normalizer)  # refuses one that is not known here
        self.name, self.erases = head.name, head.erases
        self.score, self.normalizer, self.gamma = (
            torch_score(head.score),
            head.normalizer,
            head.gamma,
        )
        self.register_buffer("query", to_tensor(head.query))
        for source in head.sources:
            self.add_module(source.stream, Source(source))

    def forward(
        self,
        tokens: Float[Tensor, "*batch q width"],
        state: Streams,
        weights: Tensor | None,
        elide: bool,
    ) -> HeadTrace:
        """Attend.

        Args:
            tokens: the tokens that ask, shape (..., q, width).
            state: the tokens of all streams.
            weights: the sample weights of the points, shape (..., n), or None.
            elide: let the head read its own row if it only erases.

        Returns:
            The message, and all that led to it.
        """
        sources = [child for child in self.children() if isinstance(child, Source)]
        queries = matmul(tokens, self.query.to(tokens.dtype))
        keys = torch.cat([matmul(state[s.stream], s.key.to(tokens.dtype)) for s in sources], -2)
        values = torch.cat([matmul(state[s.stream], s.value.to(tokens.dtype)) for s in sources], -2)
        w = None
        if weights is not None and any(s.weighted for s in sources):
            ones = weights.new_ones(())
            w = torch.cat(
                [
                    weights if s.weighted else ones.expand(state[s.stream].shape[:-1])
                    for s in sources
                ],
                -1,
            )
        if elide and self.erases:
            message = values
        else:
            row_weights = None if w is None else w[..., None, :]
            scores = self.score(queries, keys)
            top = numerators(self.normalizer, scores, row_weights, self.gamma)
            message = weighted_mean(top, values)
        return HeadTrace(self, queries, keys, values, w, message)

    def extra_repr(self) -> str:
        """The parts that are no weights, for ``repr``."""
        score = getattr(self.score, "__name__", str(self.score))
        return f"{score}, {self.normalizer}, gamma={self.gamma}"


class Block(NamedTuple):
    """A block of a layer: the stream it writes, and the names of its heads or feed-forward part."""

    name: str
    stream: str
    parts: tuple[str, ...]


class CircuitModule(WideModule):
    """A circuit of ``reference`` as a torch module.

    The weights are converted once, from the exact ones, and are buffers that go by the names in
    ``circuit.matrices``: ``assign.query``, ``gather.points.key``, ``commit_center.w1``, ...; the
    codes are ``codes``. They start as float64. The *data* decide what a run computes in: each call
    casts the weights to its working dtype, float32 or float64. ``to``, ``cuda`` and ``double`` act
    as usual; ``half`` and ``bfloat16`` stop at float32, as some weights would overflow. A device
    without float64 (such as Apple's) takes the module after ``module.to(torch.float32)`` only.

    Normalizers and inverse temperatures are part of the structure, not of the ``state_dict``. For
    the weights to be learned, turn gradients on: ``module.assign.query.requires_grad_()``.

    Attributes:
        name: the name of the construction.
        layer: the blocks of a layer, in order.

    Example:
        >>> module = CircuitModule(reference.dot_product_circuit(d=1, k=2))
        >>> run = module(torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]]))
        >>> run.labels, run.centers
        (tensor([0, 0, 1]), tensor([[0.5000],
                [2.0000]]))
    """

    codes: Tensor

    def __init__(self, circuit: reference.Circuit) -> None:
        """Take the weights of a circuit.

        Args:
            circuit: from ``reference.dot_product_circuit``, ``reference.distance_circuit``, ...

        Raises:
            TypeError: not a circuit, or one with a score or a normalizer that is not known here.
        """
        if not isinstance(circuit, reference.Circuit):
            kind = type(circuit).__name__
            raise TypeError(f"circuit: expected a reference.Circuit, got {kind}")
        super().__init__()
        self.name, self.label_slot = circuit.name, circuit.label_slot
        self.feedforward, self.scale = circuit.feedforward, circuit.scale
        self.point_slots, self.center_slots = circuit.point_slots, circuit.center_slots
        self.register_buffer("codes", to_tensor(circuit.codes))
        layer = []
        for block in circuit.layer:
            parts: dict[str, nn.Module]
            if isinstance(block, AttentionBlock):
                parts = {head.name: AttentionHead(head) for head in block.heads}
            else:
                parts = {block.name: FeedForward(block.feedforward)}
            for name, part in parts.items():
                self.add_module(name, part)
            layer.append(Block(block.name, block.stream, tuple(parts)))
        self.layer = tuple(layer)

    def forward(
        self,
        points: Numeric[Tensor, "*#batch n d"],
        centers: Numeric[Tensor, "*#batch k d"],
        layers: int = 1,
        *,
        weights: Numeric[Tensor, "*#batch n"] | None = None,
        trace: bool = False,
        elide: bool = False,
        on_layer: Callable[[int], None] | None = None,
    ) -> Run:
        """Embed the data and apply the layer ``layers`` times.

        Args:
            points: shape (..., n, d), any float dtype; integers and booleans become float64.
            centers: shape (..., k, d), the initial centers. Batch dimensions broadcast.
            layers: how many layers T >= 0.
            weights: sample weights, shape (..., n), >= 0 and not all 0; None means all 1.
            trace: keep every intermediate.
            elide: let the heads that only erase read their own row instead of attending to all
                rows of their stream. Equal to attending when the normalizer is hardmax and equal
                rows carry equal labels; saves the n x n map.
            on_layer: called with the number of layers done after each layer, as for a progress bar.

        Returns:
            Centers, labels, histories and, if asked for, the trace; on the device of the data.

        Raises:
            TypeError, ValueError: bad data, named; widths or k that are not the circuit's;
                ``elide`` with a normalizer other than hardmax; a scale of squared ReLU whose
                fourth power does not fit the dtype; a negative score for linear.
        """
        data = validation.problem(points, centers, weights)
        self._check(data, elide)
        layers = count("layers", layers, 0)
        state = self.embed(data.points, data.centers)
        centers_seen, labels_seen, traces = [data.centers], [], []
        for done in range(1, layers + 1):
            state, layer_trace = self._apply_layer(state, data.weights, elide)
            centers_seen.append(state["centers"][..., self.center_slots["content"]])
            labels_seen.append(self.read_labels(state["points"]))
            if trace:
                traces.append(layer_trace)
            if on_layer is not None:
                on_layer(done)
        history = torch.stack(centers_seen)
        labels = data.points.new_empty((0, *data.points.shape[:-1]), dtype=torch.int64)
        if layers:
            labels = torch.stack(labels_seen)
        final = history[-1].to(data.dtype, copy=True)
        return Run(final, history, labels, tuple(traces) if trace else None)

    def embed(
        self, points: Float[Tensor, "*batch n d"], centers: Float[Tensor, "*batch k d"]
    ) -> dict[str, Tensor]:
        """The tokens that enter the first layer.

        The data go to ``content``, a center's code to ``code``, 1 to ``one``, and -||c||^2/2 to
        ``bias``; all other slots start at 0.

        Returns:
            Tokens by stream: "points" of shape (..., n, width), "centers" of shape (..., k, width).
        """
        one = points.new_ones(())
        bias = -(centers * centers).sum(-1, keepdim=True) / 2
        codes = self.codes.to(centers.dtype)
        contents = {
            "points": {"content": points, "one": one},
            "centers": {"content": centers, "code": codes, "one": one, "bias": bias},
        }
        slots = {"points": self.point_slots, "centers": self.center_slots}
        rows = {"points": points.shape[:-1], "centers": centers.shape[:-1]}
        return {
            stream: torch.cat(
                [
                    contents[stream].get(name, one * 0).expand(*rows[stream], width)
                    for name, width in slots[stream].widths.items()
                ],
                -1,
            )
            for stream in contents
        }

    def read_labels(self, points: Float[Tensor, "*batch n width"]) -> Int64[Tensor, "*batch n"]:
        """The labels that point tokens carry: the nearest code, the lowest index on a tie."""
        rows = points[..., self.point_slots[self.label_slot]].detach()
        codes = self.codes.to(rows.dtype)
        return first_argmax(matmul(rows, codes.mT) - codes.square().sum(-1) / 2)

    def extra_repr(self) -> str:
        """Name and sizes, for ``repr``."""
        return f"{self.name}, d={self.center_slots.widths['content']}, k={len(self.codes)}"

    def _check(self, data: validation.Problem, elide: bool) -> None:
        """Refuse data of another shape or device, and an elision that would change the result."""
        expected = (len(self.codes), self.center_slots.widths["content"])
        got = tuple(data.centers.shape[-2:])
        if got != expected:
            raise ValueError(f"centers: expected shape {expected} for this circuit, got {got}")
        if data.points.device != self.codes.device:
            msg = f"points: expected device {self.codes.device}, where the circuit is, got"
            raise ValueError(f"{msg} {data.points.device}")
        if self.feedforward == "squared_relu":
            squared_relu_scale(self.scale, numpy_dtype(data.points.dtype))
        for head in self.children() if elide else ():
            if isinstance(head, AttentionHead) and head.erases:
                kind = type(head.normalizer)
                if kind is not Hardmax:
                    msg = f"elide: expected hardmax in head {head.name}, got {kind.__name__}"
                    raise ValueError(msg)

    def _apply_layer(
        self, state: Streams, weights: Tensor | None, elide: bool
    ) -> tuple[Streams, LayerTrace]:
        """One layer."""
        state, traces = dict(state), []
        for block in self.layer:
            before = after = state[block.stream]
            heads = {}
            for name in block.parts:
                part = self.get_submodule(name)
                if isinstance(part, AttentionHead):
                    heads[name] = part(before, state, weights, elide)
                    after = after + heads[name].message
                else:
                    after = after + part(before)
            state[block.stream] = after
            traces.append(BlockTrace(block.name, block.stream, before, after, heads))
        return state, LayerTrace(traces)
