"""What is shown, in its order. Every claim is a promise, and one that is not kept ends the demo with an error."""

import time
from typing import Any

import yaml

from demo import ending
from demo.ground import CHECKOUT, NAMESPACE, Ground
from demo.nodes import CLASS, row
from demo.pods import Pod, Pods
from demo.screen import Screen
from testbed.errors import ClusterError

_POLICIES = {name: CHECKOUT / "examples" / f"{name}.yaml" for name in ("gpu-class", "tenant-nodes")}
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-fairlead"
_STAND_IN = f"|| (variables.wanted == 'b200' && node.metadata.labels[?'{CLASS}'].orValue('') == 'h100')"
_WOKEN_WITHIN_S = 30.0


def show(ground: Ground, screen: Screen) -> None:
    """All of it."""
    began = time.monotonic()
    screen.tell("Fairlead changes where pods are placed by a policy. This takes a minute or two; the cluster stays up.")
    _cluster(ground, screen)
    _operator(ground, screen)
    pods = Pods(ground.api)
    _policies(ground, pods, screen)
    _placed(pods, screen)
    waits = _refused(ground, pods, screen)
    _edited(ground, pods, waits, screen)
    _mistaken(ground, screen)
    screen.chapter(f"That was all of it, in {time.monotonic() - began:.0f} s")
    ending.tell(ground.provider.cluster, screen)


def _cluster(ground: Ground, screen: Screen) -> None:
    screen.chapter("1. A cluster")
    with screen.waiting("a control plane and a node that runs pods"):
        ground.up()
    with screen.waiting("six nodes to place pods on"):
        nodes = ground.make_nodes()
    screen.table(["node", "GPU class", "GPUs", "belongs to"], [row(node) for node in nodes])


def _operator(ground: Ground, screen: Screen) -> None:
    screen.chapter("2. Fairlead, by helm install")
    with screen.waiting("the operator's image, built from this checkout, to be on the node"):
        tag = ground.bring_images()
    with screen.waiting("the chart to be installed, and the operator's pods to be ready") as hear:
        ground.install(tag)
        ground.wait_for_operator(hear)


def _policies(ground: Ground, pods: Pods, screen: Screen) -> None:
    screen.chapter("3. Two policies")
    pods.clear()
    for file in _POLICIES.values():
        screen.command(f"kubectl apply -f {file.relative_to(CHECKOUT)}")
        ground.kubectl("apply", "-f", str(file))
        screen.tell(f"    {_purpose(file.read_text())}")
    with screen.waiting("the operator to run a kube-scheduler that asks it, and to have verified that") as hear:
        for name in _POLICIES:
            ground.wait_for_policy(name, hear)
    screen.output(ground.kubectl("get", "sep", "-o", "custom-columns=" + _COLUMNS))


_COLUMNS = (
    "NAME:.metadata.name,READY:.status.conditions[?(@.type=='Ready')].status,"
    "SCHEDULER:.status.scheduler.name,SERVES:.status.servingGeneration"
)


def _purpose(text: str) -> str:
    """The first line of an example says what it is for."""
    return text.splitlines()[0].removeprefix("# ")


def _placed(pods: Pods, screen: Screen) -> None:
    screen.chapter("4. Pods that name the scheduler get their nodes")
    train, web = Pod("train", gpu="a100"), Pod("web", namespace="red")
    for pod in (train, web):
        pods.make(pod)
    with screen.waiting("both to be placed"):
        nodes = {pod: pods.placed(pod) for pod in (train, web)}
    why = {
        train: "of the two nodes of class a100 it has fewer GPUs left, so that the other stays whole",
        web: "it belongs to the tenant whose namespace it is",
    }
    screen.table(
        ["pod", "asks for", "node", "why"], [(pod.name, pod.asks, nodes[pod], why[pod]) for pod in (train, web)]
    )
    screen.promise("train is on a100-small", holds=nodes[train] == "a100-small", found=nodes[train])
    screen.promise("web is on a node of tenant red", holds=nodes[web] in ("red-1", "red-2"), found=nodes[web])
    written = pods.annotations(train)
    screen.promise(
        "what it got is written on the pod as it is bound: fairlead.dev/gpu-class=a100",
        holds=written.get("fairlead.dev/gpu-class") == "a100",
        found=written,
    )


def _refused(ground: Ground, pods: Pods, screen: Screen) -> Pod:
    screen.chapter("5. A pod that no node may have says why")
    pod = Pod("new-model", gpu="b200")
    pods.make(pod)
    with screen.waiting(f"the scheduler to refuse {pod.name}, which asks for {pod.asks}"):
        said = pods.refusal(pod)
    screen.quote(said)
    screen.promise("the reason is the rule's own: wrong class of GPU", holds="wrong class of GPU" in said, found=said)
    screen.command(f"fairlead explain pod/{pod.name} --namespace {pod.namespace}")
    said = ground.explain(pod.name, pod.namespace)
    screen.output(said)
    screen.promise("explain says what was compared: 'a100' against 'b200'", holds="'b200'" in said, found=said)
    return pod


def _edited(ground: Ground, pods: Pods, waits: Pod, screen: Screen) -> None:
    screen.chapter("6. The rule is edited while pods wait: h100 will do for b200")
    screen.code(_STAND_IN)
    before = _rolled(ground)
    began = time.monotonic()
    ground.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_edit(_STAND_IN)))
    with screen.waiting(f"{waits.name} to be tried again"):
        node = pods.placed(waits)
    took = time.monotonic() - began
    screen.promise(f"{waits.name} is on h100-large", holds=node == "h100-large", found=node)
    screen.promise(f"it was woken up, {took:.1f} s after the edit", holds=took < _WOKEN_WITHIN_S, found=f"{took:.1f} s")
    after = Pod("next-model", gpu="b200")
    pods.make(after)
    node = pods.placed(after)
    screen.promise("the next pod goes there at once", holds=node == "h100-large", found=node)
    now = _rolled(ground)
    screen.promise("the scheduler was not restarted for it", holds=now == before, found=(before, now))


def _mistaken(ground: Ground, screen: Screen) -> None:
    screen.chapter("7. A mistake is refused at kubectl apply, and the rule before it goes on")
    screen.code("|| node.metadata.lables['x'] == 'y'")
    try:
        ground.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_edit("|| node.metadata.lables['x'] == 'y'")))
    except ClusterError as error:
        said = "admission webhook" + str(error).rpartition("admission webhook")[2]  # before it is all that was sent
    else:
        said = ""
    screen.quote(said)
    screen.promise("it names the place and what was meant", holds="did you mean `labels`?" in said, found=said)


def _edit(more: str) -> dict[str, Any]:
    """The policy of GPUs, whose filter lets through more."""
    policy: dict[str, Any] = yaml.safe_load(_POLICIES["gpu-class"].read_text())
    policy["spec"]["filters"][0]["expression"] += f"\n{more}"
    return policy


def _rolled(ground: Ground) -> object:
    """What becomes another when the scheduler is restarted."""
    label = "fairlead.dev/scheduler=fairlead,app.kubernetes.io/component=scheduler"
    pods = ground.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=label)
    restarts = [
        (one["metadata"]["uid"], sum(each["restartCount"] for each in one["status"].get("containerStatuses", ())))
        for one in pods
    ]
    return ground.api.get(_DEPLOYMENT)["metadata"]["generation"], sorted(restarts)
