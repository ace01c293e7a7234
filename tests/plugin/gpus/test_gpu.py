import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import VGpuId


@given(uuid=st.from_regex(r"GPU-[0-9a-f-]{8,40}", fullmatch=True), index=st.integers(0, 99))
def test_an_id_that_was_written_is_read_back(uuid: str, index: int) -> None:
    assert VGpuId.parse(str(VGpuId(uuid, index))) == VGpuId(uuid, index)


@given(text=st.text())
def test_two_texts_never_name_the_same_vgpu(text: str) -> None:
    vgpu = VGpuId.parse(text)
    assert vgpu is None or str(vgpu) == text


def test_the_first_separator_ends_the_uuid_as_dcgm_exporter_reads_it() -> None:
    assert VGpuId.parse("GPU-1::7") == VGpuId("GPU-1", 7)
    assert VGpuId.parse("GPU-1::2::7") is None


@pytest.mark.parametrize(
    "text", ["", "GPU-1", "::1", "GPU-1::", "GPU-1::-1", "GPU-1::01", "GPU-1::1 ", "GPU-1::٣", "GPU-1::1\n"]
)
def test_what_is_no_id_is_not_read_as_one(text: str) -> None:
    assert VGpuId.parse(text) is None
