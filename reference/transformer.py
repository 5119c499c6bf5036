"""Circuits: attention and feed-forward blocks with printed weights, stacked into a transformer.

A circuit has two streams of tokens, *points* and *centers*, each with its own ``Slots``. A layer is
a list of blocks that run in order; every block adds to one stream:

    attention block      tokens <- tokens + sum over heads of attention(tokens Q, sources K) V
    feed-forward block   tokens <- tokens + act(tokens W1 + b1) W2 + b2

The weights are the same at every layer. A head may read several sources at once (the keys of points
and centers side by side), each with its own key and value matrix. Nothing passes from layer to
layer but the tokens, and no block sees a label that is not in them.

The circuits themselves are built in ``reference.circuits``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from reference import validation
from reference.arithmetic import cast, is_exact, matmul, working_dtype, zeros
from reference.attention import attention, scaled_scores
from reference.codes import nearest_code
from reference.feedforward import FeedForward
from reference.normalizers import Hardmax, Normalizer
from reference.scores import Score
from reference.slots import Slots
from reference.types import Array, Int64, Numeric, Real

Streams = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Source:
    """Where a head takes keys and values from.

    Attributes:
        stream: "points" or "centers".
        key: shape (width of the stream, h): keys are tokens @ key.
        value: shape (width of the stream, width of the written stream).
        weighted: whether the sample weights are the key weights here (points only).

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> gather = dot_product_circuit(d=1, k=2).layer[1].heads[0]
        >>> [(source.stream, source.weighted) for source in gather.sources]
        [('points', True), ('centers', False)]
    """

    stream: str
    key: Real[Array, "width h"]
    value: Real[Array, "width target"]
    weighted: bool = False


@dataclass(frozen=True, eq=False)
class Head:
    """One attention head, as matrices.

    Attributes:
        name: what it does, as the trace calls it.
        query: shape (width of the written stream, h).
        sources: whose keys and values it reads, side by side.
        score: the score of a key for a query.
        normalizer: scores to weights.
        gamma: the inverse temperature, in units of 1/score.
        erases: whether the head attends from a stream to itself only to remove an old value. Under
            hardmax it then reads its own row, so it may be elided.

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> head = dot_product_circuit(d=1, k=2).layer[0].heads[0]
        >>> head.name, head.normalizer, head.gamma
        ('assign', Hardmax(ties='first'), 1)
    """

    name: str
    query: Real[Array, "width h"]
    sources: tuple[Source, ...]
    score: Score
    normalizer: Normalizer
    gamma: Any = 1
    erases: bool = False


@dataclass(frozen=True, eq=False)
class AttentionBlock:
    """Heads that read the same tokens and add their messages to one stream.

    The messages are added in the order of the heads. A head that erases comes first, so that in
    floats x - x = 0 leaves exactly what the next head writes.

    Attributes:
        stream: the stream that is read and written, "points" or "centers".
        heads: the heads, in order.

    Example:
        >>> from reference.circuits import distance_circuit
        >>> [block.name for block in distance_circuit(d=1, k=2).layer]
        ['erase_label+assign', 'erase_center+gather']
    """

    stream: str
    heads: tuple[Head, ...]

    @property
    def name(self) -> str:
        """The names of the heads, joined."""
        return "+".join(head.name for head in self.heads)


@dataclass(frozen=True, eq=False)
class FeedForwardBlock:
    """A feed-forward block that adds to one stream.

    Attributes:
        name: what it does, as the trace calls it.
        stream: the stream that is read and written, "points" or "centers".
        feedforward: the weights.

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> [block.name for block in dot_product_circuit(d=1, k=2).layer[2:]]
        ['commit_center', 'commit_label']
    """

    name: str
    stream: str
    feedforward: FeedForward


Block = AttentionBlock | FeedForwardBlock


@dataclass(frozen=True, eq=False)
class HeadTrace:
    """What one head did in one layer.

    The n x K matrices are computed when asked for, so that a trace does not hold them.

    Attributes:
        head: the head, its weights in the dtype of the run.
        queries: all queries, shape (q, h).
        keys: all keys, the sources one below the other, shape (K, h).
        values: all values, in the same order, shape (K, width).
        key_weights: shape (K,), or None where all are 1.
        message: what it added, shape (q, width).

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> points, centers = np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]])
        >>> run = dot_product_circuit(d=1, k=2).run(points, centers, layers=1, trace=True)
        >>> run.trace[0]["assign"].scores  # x.c - c^2/2
        array([[ 0., -2.],
               [ 0.,  4.]])
    """

    head: Head
    queries: Real[Array, "q h"]
    keys: Real[Array, "n h"]
    values: Real[Array, "n width"]
    key_weights: Real[Array, " n"] | None
    message: Real[Array, "q width"]

    @property
    def scores(self) -> Real[Array, "q n"]:
        """gamma * score of every key for every query, shape (q, K)."""
        return scaled_scores(self.queries, self.keys, self.head.score, self.head.gamma)

    @property
    def weights(self) -> Real[Array, "q n"]:
        """The attention map, shape (q, K): rows sum to 1."""
        scores = self.head.score(self.queries, self.keys)
        return self.head.normalizer(scores, self.key_weights, self.head.gamma)


@dataclass(frozen=True, eq=False)
class BlockTrace:
    """What one block did in one layer.

    Attributes:
        name: the block's name.
        stream: the stream it wrote.
        before: the stream's tokens before, shape (q, width).
        after: and after.
        heads: the heads by name; empty for a feed-forward block.

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> points, centers = np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]])
        >>> run = dot_product_circuit(d=1, k=2).run(points, centers, layers=1, trace=True)
        >>> block = run.trace[0]["commit_center"]
        >>> block.after - block.before  # content, code, message, bias, one
        array([[ 0. ,  0. ,  0. ,  0. ,  0. ,  0. ],
               [ 1. ,  0. ,  0. , -3. , -2.5,  0. ]])
    """

    name: str
    stream: str
    before: Real[Array, "q width"]
    after: Real[Array, "q width"]
    heads: dict[str, HeadTrace]


class LayerTrace(tuple[Any, ...]):
    """The traces of the blocks of one layer, in order; ``layer["assign"]`` is that of a head.

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> circuit = dot_product_circuit(d=1, k=1)
        >>> layer = circuit.run([[0.0]], [[0.0]], layers=1, trace=True).trace[0]
        >>> [block.name for block in layer]
        ['assign', 'gather', 'commit_center', 'commit_label']
        >>> layer["gather"] is layer[1].heads["gather"]
        True
    """

    def __getitem__(self, key: Any) -> Any:
        """A block by position, or a head or feed-forward block by name."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        named: dict[str, Any] = {}
        for block in self:
            if block.heads:
                named.update(block.heads)
            else:
                named[block.name] = block
        if key not in named:
            raise KeyError(f"no head or block {key!r}; there are {', '.join(named)}")
        return named[key]


@dataclass(frozen=True, eq=False)
class Run:
    """The result of T layers.

    Attributes:
        centers: the final centers, shape (k, d), in the dtype of the input.
        center_history: all center sets, shape (T + 1, k, d), in the dtype that the run worked in;
            row 0 holds the centers that went in.
        label_history: the labels that each layer wrote, shape (T, n), int64. They belong to the
            centers that went *into* that layer.
        trace: one ``LayerTrace`` per layer, or None when none was asked for.

    Example:
        >>> from reference.circuits import dot_product_circuit
        >>> points, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [1.0]])
        >>> run = dot_product_circuit(d=1, k=2).run(points, centers, layers=2, trace=True)
        >>> run.label_history
        array([[0, 1, 1],
               [0, 0, 1]])
        >>> run.trace[1]["gather"].weights  # centers attend to 3 points and 2 centers
        array([[0.5, 0.5, 0. , 0. , 0. ],
               [0. , 0. , 1. , 0. , 0. ]])
    """

    centers: Real[Array, "k d"]
    center_history: Real[Array, "sets k d"]
    label_history: Int64[Array, "steps n"]
    trace: tuple[LayerTrace, ...] | None

    @property
    def labels(self) -> Int64[Array, " n"]:
        """The labels of the last layer, shape (n,); ``ValueError`` after 0 layers."""
        if len(self.label_history) == 0:
            raise ValueError("labels: a run of 0 layers has none")
        return self.label_history[-1]


@dataclass(frozen=True, eq=False)
class Circuit:
    """A transformer layer that is repeated.

    Attributes:
        name: the name of the construction.
        point_slots: the slots of a point token.
        center_slots: the slots of a center token.
        codes: shape (k, width): the code of each center.
        layer: the blocks of a layer, in order.
        label_slot: the slot of a point token that holds the label after a layer.
        feedforward: the form of the feed-forward block, None if the circuit has none.
        scale: the shift of squared ReLU, None without it.

    Example:
        >>> from reference.circuits import distance_circuit
        >>> circuit = distance_circuit(d=1, k=2)
        >>> circuit.point_slots
        Slots(content=1, label=2)
        >>> print(format_matrix(circuit.matrices["assign.centers.value"]))  # code -> label
        .  .  .
        .  1  .
        .  .  1
    """

    name: str
    point_slots: Slots
    center_slots: Slots
    codes: Real[Array, "k width"]
    layer: tuple[Block, ...]
    label_slot: str
    feedforward: str | None = None
    scale: Any = None

    def astype(self, dtype: np.dtype[Any]) -> "Circuit":
        """The same circuit with its weights in ``dtype``; object means exact rationals."""
        codes = cast(self.codes, dtype)
        return replace(self, codes=codes, layer=tuple(_cast_block(b, dtype) for b in self.layer))

    def embed(
        self, points: Real[Array, "n d"], centers: Real[Array, "k d"]
    ) -> dict[str, Real[Array, "..."]]:
        """The tokens that enter the first layer.

        The data go to ``content``, a center's code to ``code``, 1 to ``one``, and -||c||^2/2 to
        ``bias``; all other slots start at 0. A slot that a circuit does not have is left out.

        Returns:
            Tokens by stream: "points" of shape (n, width), "centers" of shape (k, width).
        """
        dtype = working_dtype(points, centers)
        x, c = cast(points, dtype), cast(centers, dtype)
        one = zeros((1,), dtype) + 1
        contents = {
            "code": self.codes,
            "one": one,
            "bias": -(c * c).sum(axis=1, keepdims=True) / 2,
        }

        def tokens(slots: Slots, rows: int, known: dict[str, Array]) -> Array:
            return slots.embed(rows, dtype, {n: v for n, v in known.items() if n in slots})

        return {
            "points": tokens(self.point_slots, len(x), {"content": x, "one": one}),
            "centers": tokens(self.center_slots, len(c), {"content": c, **contents}),
        }

    def read_labels(self, points: Real[Array, "n width"]) -> Int64[Array, " n"]:
        """The labels that point tokens carry: the nearest code, the lowest index on a tie."""
        rows = self.point_slots.read(points, self.label_slot)
        return nearest_code(rows, cast(self.codes, rows.dtype)).argmax(axis=1).astype(np.int64)

    def run(
        self,
        points: Numeric[Array, "n d"],
        centers: Numeric[Array, "k d"],
        layers: int,
        *,
        weights: Numeric[Array, " n"] | None = None,
        trace: bool = False,
        elide: bool = False,
        on_layer: Callable[[int], None] | None = None,
    ) -> Run:
        """Embed the data and apply the layer ``layers`` times.

        Args:
            points: shape (n, d).
            centers: shape (k, d), the initial centers.
            layers: how many layers T >= 0.
            weights: sample weights, shape (n,), >= 0 and not all 0; None means all 1.
            trace: keep every intermediate.
            elide: let the heads that only erase read their own row instead of attending to all
                rows of their stream. Equal to attending when the normalizer is hardmax and equal
                rows carry equal labels; saves time of order n^2.
            on_layer: called after each layer with the number of layers done, for progress bars.

        Returns:
            Centers, labels, histories and, if asked for, the trace.

        Raises:
            TypeError, ValueError: bad data, named; widths or k that are not the circuit's;
                ``elide`` with a normalizer other than hardmax; a scale of squared ReLU whose
                fourth power does not fit the dtype.

        Example:
            >>> from reference.circuits import dot_product_circuit
            >>> run = dot_product_circuit(d=1, k=2).run([[0.0], [1.0], [2.0]], [[0.0], [2.0]], 1)
            >>> run.labels, run.centers
            (array([0, 0, 1]), array([[0.5],
                   [2. ]]))
        """
        data = validation.problem(points, centers, weights)
        self._check(data, elide)
        layers = validation.count("layers", layers, 0)
        dtype = working_dtype(data.points, data.centers)
        circuit = self.astype(dtype)
        tokens = circuit.embed(data.points, data.centers)
        w = None if data.weights is None else cast(data.weights, dtype)
        if w is not None:
            validation.beside_one(w)
        centers_seen, labels_seen, traces = [], [], []
        centers_seen.append(self.center_slots.read(tokens["centers"], "content"))
        for layer in range(layers):
            tokens, layer_trace = circuit._apply(tokens, w, trace, elide)
            centers_seen.append(self.center_slots.read(tokens["centers"], "content"))
            labels_seen.append(circuit.read_labels(tokens["points"]))
            traces.append(layer_trace)
            if on_layer is not None:
                on_layer(layer + 1)
        history = np.stack(centers_seen)
        labels = np.array(labels_seen, dtype=np.int64).reshape(layers, len(data.points))
        final = cast(history[-1], data.centers.dtype).copy()
        return Run(final, history, labels, tuple(traces) if trace else None)

    def _check(self, data: validation.Problem, elide: bool) -> None:
        """Refuse data of another shape, and an elision that would change the result."""
        k, d = len(self.codes), self.center_slots.widths["content"]
        if data.centers.shape != (k, d):
            msg = f"centers: expected shape ({k}, {d}) for this circuit, got {data.centers.shape}"
            raise ValueError(msg)
        if self.feedforward == "squared_relu" and not is_exact(data.points):
            validation.squared_relu_scale(self.scale, working_dtype(data.points))
        for block in self.layer if elide else ():
            for head in block.heads if isinstance(block, AttentionBlock) else ():
                if head.erases and not isinstance(head.normalizer, Hardmax):
                    kind = type(head.normalizer).__name__
                    raise ValueError(f"elide: expected hardmax in head {head.name}, got {kind}")

    def _apply(
        self, tokens: Streams, weights: Array | None, trace: bool, elide: bool
    ) -> tuple[dict[str, Array], LayerTrace]:
        """One layer."""
        state, traces = dict(tokens), []
        for block in self.layer:
            block_trace = _apply_block(block, state, weights, trace, elide)
            state[block.stream] = block_trace.after
            if trace:
                traces.append(block_trace)
        return state, LayerTrace(traces)

    @cached_property
    def matrices(self) -> dict[str, Real[Array, "..."]]:
        """Every weight of a layer by name, exact: ``"assign.query"``, ``"gather.points.key"``, ...

        Example:
            >>> from reference.circuits import dot_product_circuit
            >>> list(dot_product_circuit(d=1, k=2).matrices)[:3]
            ['assign.query', 'assign.centers.key', 'assign.centers.value']
        """
        return dict(_named_matrices(self.layer))


def _apply_block(
    block: Block, state: Streams, weights: Array | None, trace: bool, elide: bool
) -> BlockTrace:
    """One block: the tokens of its stream before and after; its heads only for a trace."""
    before, heads = state[block.stream], {}
    after = before.copy()
    if isinstance(block, FeedForwardBlock):
        after += block.feedforward(before)
    else:
        for head in block.heads:
            applied = _attend(head, block.stream, state, weights, elide)
            after += applied.message
            if trace:
                heads[head.name] = applied
    return BlockTrace(block.name, block.stream, before, after, heads)


def _attend(
    head: Head, stream: str, state: Streams, sample_weights: Array | None, elide: bool
) -> HeadTrace:
    """Apply one head to the streams."""
    queries = matmul(state[stream], head.query)
    keys = np.concatenate([matmul(state[s.stream], s.key) for s in head.sources])
    values = np.concatenate([matmul(state[s.stream], s.value) for s in head.sources])
    key_weights = _key_weights(head, state, sample_weights)
    if elide and head.erases:
        message = values
    else:
        message = attention(
            queries,
            keys,
            values,
            score=head.score,
            normalizer=head.normalizer,
            gamma=head.gamma,
            key_weights=key_weights,
        )
    return HeadTrace(head, queries, keys, values, key_weights, message)


def _key_weights(head: Head, state: Streams, sample_weights: Array | None) -> Array | None:
    """Sample weights for the sources that are weighted, 1 for the others; None if all are 1."""
    if sample_weights is None or not any(source.weighted for source in head.sources):
        return None
    ones = zeros((1,), sample_weights.dtype) + 1
    return np.concatenate(
        [
            sample_weights if source.weighted else np.repeat(ones, len(state[source.stream]))
            for source in head.sources
        ]
    )


def _cast_block(block: Block, dtype: np.dtype[Any]) -> Block:
    """The block with its weights in a dtype."""
    if isinstance(block, FeedForwardBlock):
        return replace(block, feedforward=block.feedforward.astype(dtype))
    heads = tuple(
        replace(
            head,
            query=cast(head.query, dtype),
            sources=tuple(
                replace(s, key=cast(s.key, dtype), value=cast(s.value, dtype)) for s in head.sources
            ),
        )
        for head in block.heads
    )
    return replace(block, heads=heads)


def _named_matrices(layer: tuple[Block, ...]) -> Iterator[tuple[str, Array]]:
    """All weights of the blocks with their names."""
    for block in layer:
        if isinstance(block, FeedForwardBlock):
            for name in ("w1", "b1", "w3", "b3", "w2", "b2"):
                weight = getattr(block.feedforward, name)
                if weight is not None:
                    yield f"{block.name}.{name}", weight
            continue
        for head in block.heads:
            yield f"{head.name}.query", head.query
            for source in head.sources:
                yield f"{head.name}.{source.stream}.key", source.key
                yield f"{head.name}.{source.stream}.value", source.value


def format_matrix(matrix: Real[Array, "..."]) -> str:
    """A weight matrix as text, for reading: exact fractions, zeros as dots.

    Example:
        >>> from reference.arithmetic import exact
        >>> print(format_matrix(exact([[1, 0], ["-1/2", 3]])))
           1  .
        -1/2  3
    """
    rows = np.atleast_2d(matrix)
    texts = [["." if value == 0 else str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(t.rjust(w) for t, w in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(lines)
