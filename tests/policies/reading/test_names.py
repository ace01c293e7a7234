"""The name of a policy file says which namespace it is for."""

import pytest

from policies.reading.layers import problem_of_name


@pytest.mark.parametrize(
    "name",
    ["_cluster.yaml", "_default.yaml", "default.yaml", "team-1.yaml", "0.yaml", f"{'a' * 63}.yaml"],
)
def test_a_good_file_name(name: str) -> None:
    assert problem_of_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "_defaults.yaml",
        "_Default.yaml",
        "team.yml",
        "_default.yml",
        "Team.yaml",
        "team_a.yaml",
        "-a.yaml",
        "a-.yaml",
        "a.b.yaml",
        f"{'a' * 64}.yaml",
        "t\u00e9am.yaml",
        "a\n.yaml",
    ],
)
def test_a_name_that_is_no_namespace_is_a_fault(name: str) -> None:
    problem = problem_of_name(name)
    assert problem is not None
    assert (problem.file, problem.line) == (name, 0)
    assert "rename" in problem.message
