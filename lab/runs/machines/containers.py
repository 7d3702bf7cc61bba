"""Machines that an orchestrator of containers starts: files for it, and which machines these are.

Each container waits until `closlab run --machines` has `closlab part` carried out in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

IMAGE = "closlab"  # as Containerfile says to call it
# What a cable between machines wraps is more than the 1,500 bytes that a bridge has by default.
_MTU = 9500


class Orchestrated(NamedTuple):
    """Files for an orchestrator."""

    name: str  # of its own file
    content: dict[str, Any]
    up: str  # what starts the containers
    machines: dict[str, Any]  # the file for `closlab run --machines`


def containerlab(lab: str, count: int) -> Orchestrated:
    """A topology of containerlab: its nodes are as many machines, on its management network."""
    names = [f"m{number}" for number in range(1, count + 1)]
    node = {"kind": "linux", "image": IMAGE, "user": "root", "cmd": "sleep infinity"}
    content = {
        "name": lab,
        "mgmt": {"network": f"{lab}-machines", "mtu": _MTU},
        "topology": {"defaults": node, "nodes": {name: {} for name in names}},
    }
    starts = {name: f"docker exec -i --user root clab-{lab}-{name}" for name in names}
    file = f"{lab}.clab.yml"
    return Orchestrated(file, content, f"containerlab deploy -t {file}", _machines(starts))


def kubernetes(lab: str, count: int) -> Orchestrated:
    """A manifest of Kubernetes: a pod on each of as many nodes, which may make namespaces."""
    apart = {"labelSelector": _selected(lab), "topologyKey": "kubernetes.io/hostname"}
    container = {
        "name": "closlab",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    pod = {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        },
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    content = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": lab, "labels": _labels(lab)},
        "spec": {
            "serviceName": lab,
            "replicas": count,
            "podManagementPolicy": "Parallel",
            "selector": _selected(lab),
            "template": {"metadata": {"labels": _labels(lab)}, "spec": pod},
        },
    }
    starts = {f"{lab}-{at}": f"kubectl exec -i {lab}-{at} --" for at in range(count)}
    file = f"{lab}.k8s.yml"
    up = f"kubectl apply -f {file} && kubectl rollout status statefulset/{lab}"
    return Orchestrated(file, content, up, _machines(starts))


def _labels(lab: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "closlab", "app.kubernetes.io/instance": lab}


def _selected(lab: str) -> dict[str, Any]:
    return {"matchLabels": _labels(lab)}


def _machines(starts: dict[str, str]) -> dict[str, Any]:
    """Each is reached by the address of its default route, which it knows itself."""
    return {"machines": [{"name": name, "start": start} for name, start in starts.items()]}


MAKERS: dict[str, Callable[[str, int], Orchestrated]] = {
    "containerlab": containerlab,
    "kubernetes": kubernetes,
}
