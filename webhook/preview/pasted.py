"""A text with pods, and what the webhook would do with them, in the sentences of `gpu-share preview`."""

from policies.policy_set import PolicySet
from webhook.preview.output import show_explained
from webhook.preview.previewed import preview
from webhook.preview.workloads import read_input


def explained(text: str, policies: PolicySet, namespace: str, unwritten: str) -> tuple[str, ...]:
    """
    Write the decisions line by line; *namespace* replaces those in the text, unless it is empty.

    Where a pod has none, it is in *unwritten*.

    Raises:
        UnreadableError: If the text cannot be read.
    """
    given = read_input(text, "pasted", is_ours=policies.cluster.is_ours)
    pods = preview(given, policies, namespace or None, unwritten=unwritten)
    return (*show_explained(pods), *given.unknown) or ("No pod and no pod template here.",)
