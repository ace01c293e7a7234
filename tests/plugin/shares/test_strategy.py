from dataclasses import replace

from plugin.gpus.numbers import GpuNumbers
from plugin.shares.strategy import StrategyOf, strategies
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from policies.nodes import NodeRule

GPUS = simulated_gpus("4xH200")
RULES = (
    NodeRule(node="node*", indexes=(0,), strategy="whole"),
    NodeRule(model="*h200", indexes=(1,), strategy="time-slicing"),
    NodeRule(indexes=(2,), strategy="none"),
    NodeRule(node="another", strategy="none"),
)


def strategies_of(node: str) -> StrategyOf:
    return strategies(Cluster(nodes=RULES), node_name=node, number_of=GpuNumbers(None, RULES).of, default="mps")


def test_the_first_rule_that_fits_decides_and_the_option_where_none_does() -> None:
    strategy_of = strategies(
        Cluster(nodes=RULES), node_name="node", number_of=GpuNumbers(None, RULES).of, default="mps"
    )
    assert [strategy_of(gpu) for gpu in GPUS] == ["whole", "time-slicing", None, "mps"]


def test_a_node_whose_gpus_are_left_to_others_shares_none() -> None:
    strategy_of = strategies(
        Cluster(nodes=RULES), node_name="another", number_of=GpuNumbers(None, RULES).of, default="mps"
    )
    assert strategy_of(replace(GPUS[0], index=7)) is None


def test_what_is_said_of_a_gpu_stays_though_its_number_becomes_anothers() -> None:
    strategy_of = strategies(
        Cluster(nodes=RULES), node_name="node", number_of=GpuNumbers(None, RULES).of, default="mps"
    )
    before = [strategy_of(gpu) for gpu in GPUS]
    assert [strategy_of(replace(gpu, index=(gpu.index + 1) % 4)) for gpu in GPUS] == before
