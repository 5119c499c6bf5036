"""The wheel: what is in it, and that it works away from the checkout."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = {"reference", "proofs", "kmt_torch", "oracle", "kmt_cli"}

# Run with `-S`, so that site-packages are searched but their .pth files, and with them the
# editable installation of the checkout, are not read.
LLOYD_BY_CIRCUIT = """
import sys
sys.path[:0] = [{target!r}, *{dependencies!r}]
import numpy as np
import reference

assert reference.__file__.startswith({target!r}), reference.__file__
points = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 8.0], [9.0, 10.0]])
centers = np.array([[0.0, 1.0], [8.0, 8.0]])
labels, moved = reference.lloyd_step(points, centers)
run = reference.dot_product_circuit(2, 2).run(points, centers, 1)
assert labels.tolist() == run.labels.tolist() == [0, 0, 1, 1]
assert moved.tolist() == run.centers.tolist() == [[0.5, 0.0], [9.0, 9.0]]
"""


def pip(*arguments: str) -> None:
    """Runs pip without a network."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_the_typed_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {name for name in PACKAGES if (ROOT / name / "__init__.py").exists()}
    assert packages == {name.partition("/")[0] for name in names if name.endswith("/py.typed")}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (file,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(file).decode())
    core = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in core} == {"numpy", "jaxtyping"}
    extras = {"torch", "proofs", "oracle", "cli", "docs", "bench", "dev"}
    assert set(metadata.get_all("Provides-Extra")) == extras
    assert metadata["License-Expression"] == "MIT"


def test_wheel_runs_a_lloyd_step_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    dependencies = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    code = LLOYD_BY_CIRCUIT.format(target=str(target), dependencies=dependencies)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]


def test_tested_versions_satisfy_the_ranges() -> None:
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    requirements = [Requirement(line) for group in groups for line in group]
    assert set(pins) == {requirement.name for requirement in requirements}
    assert all(
        requirement.specifier.contains(pins[requirement.name]) for requirement in requirements
    )
