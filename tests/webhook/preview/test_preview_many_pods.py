"""One object with thousands of pods under one mapping."""

import json
import time

from webhook.preview.workloads import read_input


def test_pods_of_one_mapping_cost_time_by_their_number() -> None:
    spec = {"containers": [{"name": "tensorflow", "image": "my/train:1"}]}
    replicas = {f"Worker{at}": {"template": {"spec": spec}} for at in range(5000)}
    head = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "it"}}
    text = json.dumps({**head, "spec": {"tfReplicaSpecs": replicas}})
    start = time.process_time()
    assert len(read_input(text, "many.json").workloads) == 5000
    assert time.process_time() - start < 10
