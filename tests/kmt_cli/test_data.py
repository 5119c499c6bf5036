"""What files are read as."""

from pathlib import Path

import numpy as np
import pytest

from kmt_cli.data import BUILT_IN, Reading, gaussians, load


def read(content: str, **options: object) -> list[list[float]]:
    name = "data.tsv" if "\t" in content else "data.csv"
    Path(name).write_text(content, "utf-8")
    return load(name, Reading(**options)).points.tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "options", "points"),
    [
        ("1,2\n3,4\n", {}, [[1, 2], [3, 4]]),
        ("1, -2e3\n.5,4", {}, [[1, -2000], [0.5, 4]]),
        ("\ufeff1,2\r\n3,4\r\n\r\n", {}, [[1, 2], [3, 4]]),
        ("1\t2\n", {}, [[1, 2]]),
        ("1;2\n", {"delimiter": ";"}, [[1, 2]]),
        ("x,y\n1,2\n", {"skip_header": True}, [[1, 2]]),
        ("x,y\n1,2\n", {"skip_header": True, "columns": ("y",)}, [[2]]),
        ("x,y,z\n1,a,2\n", {"skip_header": True, "columns": ("z", "1")}, [[2, 1]]),
        ("1,a,2\n", {"columns": ("3", "1")}, [[2, 1]]),
        ('"1","2"\n', {}, [[1, 2]]),
        ("7\n", {}, [[7]]),
    ],
)
def test_csv(content: str, options: dict[str, object], points: list[list[float]]) -> None:
    assert read(content, **options) == points


def test_numpy_files() -> None:
    np.save("a.npy", np.array([[1, 2]], dtype=np.uint8))
    assert load("a.npy").points.tolist() == [[1.0, 2.0]]
    np.savez("one.npz", only=np.ones((2, 1)))
    assert load("one.npz").points.shape == (2, 1)
    np.savez("two.npz", a=np.ones((2, 1)), b=np.zeros((3, 1)))
    assert load("two.npz", Reading(array="b")).points.shape == (3, 1)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("iris", (150, 4)),
        ("wine", (178, 13)),
        ("digits", (1797, 64)),
        ("breast-cancer", (569, 30)),
        ("gaussians", (10_000, 2)),
    ],
)
def test_built_in(name: str, shape: tuple[int, int]) -> None:
    assert load(name).points.shape == shape
    assert np.isfinite(load(name).points).all()


def test_every_built_in_set_is_tested() -> None:
    assert set(BUILT_IN) == {"iris", "wine", "digits", "breast-cancer", "gaussians"}


def test_gaussians_follow_their_seed() -> None:
    assert np.array_equal(gaussians(3).points, gaussians(3).points)
    assert not np.array_equal(gaussians(3).points, gaussians(4).points)


def test_a_file_goes_before_a_built_in_set() -> None:
    Path("iris").write_text("1,2\n", "utf-8")
    assert load("iris").points.tolist() == [[1, 2]]
