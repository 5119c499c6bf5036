import threading
from typing import Any

import pytest
import torch

from kmt_torch.arithmetic import WideModule, full_precision, matmul, widen, working_dtype

PRECISIONS = ["highest", "high", "medium"]


@pytest.fixture(autouse=True)
def _settings_back() -> Any:
    yield
    torch.set_float32_matmul_precision("highest")
    for backend in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
        backend.fp32_precision = "none"


@pytest.mark.parametrize("before", PRECISIONS)
def test_full_precision_is_set_and_put_back(before: str) -> None:
    torch.set_float32_matmul_precision(before)
    with full_precision():
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cuda.matmul.allow_tf32
        with full_precision():
            pass
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("setting", ["none", "ieee", "tf32"])
def test_the_newer_interface_is_put_back_too(setting: str) -> None:
    torch.backends.cuda.matmul.fp32_precision = setting
    with full_precision():
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
    assert torch.backends.cuda.matmul.fp32_precision == setting
    assert torch.backends.mkldnn.matmul.fp32_precision == "none"


def test_an_inherited_setting_is_still_inherited_after() -> None:
    torch.backends.fp32_precision = "tf32"
    with full_precision():
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    torch.backends.fp32_precision = "none"
    assert torch.backends.cuda.matmul.fp32_precision == "none"


def test_put_back_after_an_error() -> None:
    torch.set_float32_matmul_precision("medium")
    with pytest.raises(KeyError), full_precision():
        raise KeyError
    assert torch.get_float32_matmul_precision() == "medium"


def test_threads_that_overlap_keep_full_precision() -> None:
    torch.set_float32_matmul_precision("medium")
    inside, first_left = threading.Barrier(2), threading.Event()
    seen = []

    def first() -> None:
        with full_precision():
            inside.wait(5)
        first_left.set()

    def second() -> None:
        with full_precision():
            inside.wait(5)
            first_left.wait(5)
            seen.append(torch.get_float32_matmul_precision())

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["highest"]
    assert torch.get_float32_matmul_precision() == "medium"


# Large enough for the kernels that round differently under "medium" where there are any.
def test_products_do_not_depend_on_the_settings() -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 256, 256, generator=generator)
    expected = left @ right
    torch.set_float32_matmul_precision("medium")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (left @ right).dtype == torch.bfloat16
        product = matmul(left, right)
        assert (left @ right).dtype == torch.bfloat16
    assert torch.equal(product, expected)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ([torch.float16], torch.float32),
        ([torch.bfloat16, torch.float16], torch.float32),
        ([torch.float32, torch.float64], torch.float64),
        ([torch.uint8], torch.float64),
        ([torch.bool, torch.float16], torch.float64),
    ],
)
def test_working_dtype(dtypes: list[torch.dtype], expected: Any) -> None:
    tensors = [torch.ones(1).to(dtype) for dtype in dtypes]
    assert working_dtype(*tensors) == expected
    assert {t.dtype for t in widen(*tensors)} == {expected}


def test_weights_stay_as_wide_as_the_arithmetic() -> None:
    module = WideModule()
    module.child = WideModule()
    module.child.register_buffer("weight", torch.tensor(1e10, dtype=torch.float64))
    for convert in (module.half, module.bfloat16, lambda: module.to(torch.float16)):
        convert()
        assert module.child.weight.dtype == torch.float32
        assert module.child.weight == 1e10
    assert module.double().child.weight.dtype == torch.float64
    assert module.to("meta").child.weight.device.type == "meta"
