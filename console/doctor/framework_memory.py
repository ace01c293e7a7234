"""Whether a framework was told its share of the memory: what holds it where nothing else does."""

from console.objects import Container
from policies import pod as rules
from policies.contract import TIME_SLICING
from policies.denial import DeniedError
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget
from policies.frameworks.detection import Catalogue
from policies.frameworks.memory import Wish, advise


def is_told(container: Container, share: int, catalogue: Catalogue) -> bool:
    """Whether *container* has a memory setting of a framework within its *share*, in thousandths of a GPU."""
    written = rules.Container(
        name=container.name,
        image=str(container.image),
        command=[*container.command] or None,
        args=[*container.args] or None,
        env=[rules.Variable(one.name, one.value) for one in container.env] or None,
    )
    budget = Budget(share=share, target=share, strategy=TIME_SLICING)
    try:
        own = advise(written, Wish(adds=False), budget, catalogue, Allowance()).own
    except DeniedError:  # there is more in it than in any container that was granted a share
        return False
    return any(one.verdict == "within" for one in own)
