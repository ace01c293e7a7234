"""`gpu-share mps` after a card has died, and NVML counts those behind it otherwise."""

import signal

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import needs_mounts

C = B[:-1] + "2"


@needs_mounts
def test_a_gpu_of_another_plugin_is_left_to_it_though_it_has_the_number_of_a_shared_one_now(
    bench: Bench, start: Start
) -> None:
    bench.cluster("nodes: [{indexes: [1], offer: none}]\n")
    bench.has(A, B, C)
    running = start()
    bench.is_now("ready", A, C)
    running.ends(by=signal.SIGTERM)
    bench.has(B, C)
    running = start()
    bench.is_now("ready", C)
    _, log, _ = running.ends(by=signal.SIGTERM)
    assert [[gpu["uuid"] for gpu in line["gpus"]] for line in log if line["message"] == "starting"] == [[C]]
    assert bench.mode(B) == 0
