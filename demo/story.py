"""Story of the demo, in order. Every claim is checked, and a claim that does not hold ends the demo with an error."""

import time
from typing import Any

import yaml

from demo import ending
from demo.ground import CHECKOUT, NAMESPACE, Ground
from demo.measured import obstacle
from demo.nodes import CLASS, row
from demo.pods import Pod, Pods
from demo.screen import Screen
from testbed.errors import ClusterError

_POLICIES = {name: CHECKOUT / "examples" / f"{name}.yaml" for name in ("gpu-class", "tenant-nodes")}
_COOL = CHECKOUT / "demo" / "cool.yaml"
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-fairlead"
_STAND_IN = f"|| (variables.wanted == 'b200' && node.metadata.labels[?'{CLASS}'].orValue('') == 'h100')"
_WOKEN_WITHIN_S = 30.0
_COOL_LOAD = 0.2


def show(ground: Ground, screen: Screen) -> None:
    """Show all chapters."""
    began = time.monotonic()
    screen.tell("Fairlead changes where pods are placed. This takes a minute or two; the cluster keeps running.")
    _cluster(ground, screen)
    _operator(ground, screen)
    pods = Pods(ground.api)
    _policies(ground, pods, screen)
    _placed(pods, screen)
    waits = _rejected(ground, pods, screen)
    _edited(ground, pods, waits, screen)
    _mistaken(ground, screen)
    _measured(ground, pods, screen)
    screen.chapter(f"Done, in {time.monotonic() - began:.0f} s")
    ending.tell(ground.provider.cluster, screen)


def _cluster(ground: Ground, screen: Screen) -> None:
    screen.chapter("1. A cluster")
    with screen.waiting("a control plane and a node that runs pods"):
        ground.up()
    with screen.waiting("six nodes to place pods on"):
        nodes = ground.make_nodes()
    screen.table(["node", "GPU class", "GPUs", "tenant"], [row(node) for node in nodes])


def _operator(ground: Ground, screen: Screen) -> None:
    screen.chapter("2. Fairlead, installed with Helm")
    with screen.waiting("the operator's image, built from this checkout, on the node"):
        tag = ground.bring_images()
    with screen.waiting("the chart installed and the operator's pods ready") as hear:
        ground.install(tag)
        ground.wait_for_operator(hear)


def _policies(ground: Ground, pods: Pods, screen: Screen) -> None:
    screen.chapter("3. Two policies")
    ground.kubectl("delete", "sep", "cool", "--ignore-not-found")  # of an earlier demo
    pods.clear()
    for file in _POLICIES.values():
        screen.command(f"kubectl apply -f {file.relative_to(CHECKOUT)}")
        ground.kubectl("apply", "-f", str(file))
        screen.tell(f"    {_purpose(file.read_text())}")
    with screen.waiting("a kube-scheduler that calls the operator, rolled out and verified") as hear:
        for name in _POLICIES:
            ground.wait_for_policy(name, hear)
    screen.output(ground.kubectl("get", "sep", "-o", "custom-columns=" + _COLUMNS))


_COLUMNS = (
    "NAME:.metadata.name,READY:.status.conditions[?(@.type=='Ready')].status,"
    "SCHEDULER:.status.scheduler.name,SERVES:.status.servingGeneration"
)


def _purpose(text: str) -> str:
    """Return the first line of an example, which is its purpose."""
    return text.splitlines()[0].removeprefix("# ")


def _placed(pods: Pods, screen: Screen) -> None:
    screen.chapter("4. Pods that name the scheduler are placed by the rules")
    train, web = Pod("train", gpu="a100"), Pod("web", namespace="red")
    for pod in (train, web):
        pods.make(pod)
    with screen.waiting("both pods placed"):
        nodes = {pod: pods.placed(pod) for pod in (train, web)}
    why = {
        train: "the a100 node with fewer free GPUs: the other one stays free",
        web: "node and namespace belong to the same tenant",
    }
    screen.table(
        ["pod", "requests", "node", "why"], [(pod.name, pod.asks, nodes[pod], why[pod]) for pod in (train, web)]
    )
    screen.promise("train is on a100-small", holds=nodes[train] == "a100-small", found=nodes[train])
    screen.promise("web is on a node of tenant red", holds=nodes[web] in ("red-1", "red-2"), found=nodes[web])
    written = pods.annotations(train)
    screen.promise(
        "the GPU class is written on the pod at bind: fairlead.dev/gpu-class=a100",
        holds=written.get("fairlead.dev/gpu-class") == "a100",
        found=written,
    )


def _rejected(ground: Ground, pods: Pods, screen: Screen) -> Pod:
    screen.chapter("5. A pod that is rejected on every node says why")
    pod = Pod("new-model", gpu="b200")
    pods.make(pod)
    with screen.waiting(f"every node rejected for {pod.name}, which requests {pod.asks}"):
        said = pods.rejection(pod)
    screen.quote(said)
    screen.promise("the reason is the rule's own: wrong class of GPU", holds="wrong class of GPU" in said, found=said)
    screen.command(f"fairlead explain pod/{pod.name} --namespace {pod.namespace}")
    said = ground.fairlead("explain", f"pod/{pod.name}", "--namespace", pod.namespace)
    screen.output(said)
    screen.promise("explain shows the compared values: 'a100' against 'b200'", holds="'b200'" in said, found=said)
    return pod


def _edited(ground: Ground, pods: Pods, waits: Pod, screen: Screen) -> None:
    screen.chapter("6. An edit while the pod is pending: h100 nodes accept b200 pods too")
    screen.code(_STAND_IN)
    before = _rolled(ground)
    began = time.monotonic()
    ground.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_edit(_STAND_IN)))
    with screen.waiting(f"a retry of {waits.name}"):
        node = pods.placed(waits)
    took = time.monotonic() - began
    screen.promise(f"{waits.name} is on h100-large", holds=node == "h100-large", found=node)
    screen.promise(
        f"it was retried and placed {took:.1f} s after the edit", holds=took < _WOKEN_WITHIN_S, found=f"{took:.1f} s"
    )
    after = Pod("next-model", gpu="b200")
    pods.make(after)
    node = pods.placed(after)
    screen.promise("the next b200 pod is placed there at once", holds=node == "h100-large", found=node)
    now = _rolled(ground)
    screen.promise("the edit did not restart the scheduler", holds=now == before, found=(before, now))


def _mistaken(ground: Ground, screen: Screen) -> None:
    screen.chapter("7. kubectl apply denies a mistake, and the last good rule keeps serving")
    screen.code("|| node.metadata.lables['x'] == 'y'")
    try:
        ground.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_edit("|| node.metadata.lables['x'] == 'y'")))
    except ClusterError as error:
        said = "admission webhook" + str(error).rpartition("admission webhook")[2]  # the rest repeats the input
    else:
        said = ""
    screen.quote(said)
    screen.promise("the message names the place and the fix", holds="did you mean `labels`?" in said, found=said)


def _measured(ground: Ground, pods: Pods, screen: Screen) -> None:
    screen.chapter("8. Measured load: pods avoid a node while it is hot")
    if ground.load is None:
        screen.tell(f"Left out: {obstacle(ground.provider)}.")
        return
    # of every node: one without a value would have the policy's default only while it is new
    hot = dict.fromkeys(ground.node_names(), _COOL_LOAD) | {"red-1": 0.95, "red-2": 0.9}
    with screen.waiting("a Prometheus that measures the load of nodes"):
        ground.load.up(hot)
    screen.command(f"kubectl apply -f {_COOL.relative_to(CHECKOUT)}")
    ground.kubectl("apply", "-f", str(_COOL))
    screen.tell(f"    {_purpose(_COOL.read_text())}")
    with screen.waiting("the policy ready, and its values there") as hear:
        for condition in ("Ready", "DataReady"):
            ground.wait_for_policy("cool", hear, condition=condition)
    pod = Pod("report", namespace="red")
    pods.make(pod)
    with screen.waiting(f"every node rejected for {pod.name}, because both nodes of tenant red are hot"):
        said = pods.rejection(pod)
    screen.quote(said)
    screen.promise("the reason is that of the measured load", holds="load is too high" in said, found=said)
    with ground.load.url_here() as url:
        asked = ("explain", f"pod/{pod.name}", "--namespace", pod.namespace, "--prometheus", f"default={url}")
        screen.command(f"fairlead {' '.join(asked)}")
        said = ground.fairlead(*asked)
    screen.output(said)
    screen.promise("explain shows the measured value and its limit", holds="value 0.95" in said, found=said)
    screen.command("fairlead data cool")
    said = ground.fairlead("data", "cool")
    screen.output(said)
    screen.promise("data shows how old the values are", holds="cool: DataReady" in said, found=said)
    ground.load.set(hot | {"red-2": 0.3})
    with screen.waiting("red-2 cools down to 0.3, and the pod is retried"):
        node = pods.placed(pod)
    screen.promise(f"{pod.name} is on red-2", holds=node == "red-2", found=node)
    after = Pod("next-report", namespace="red")
    pods.make(after)
    node = pods.placed(after)
    screen.promise("the next pod avoids red-1 too, which is still hot", holds=node == "red-2", found=node)
    screen.tell(ground.load.how_to_edit)


def _edit(more: str) -> dict[str, Any]:
    """Return the GPU policy with `more` added to its filter."""
    policy: dict[str, Any] = yaml.safe_load(_POLICIES["gpu-class"].read_text())
    policy["spec"]["filters"][0]["expression"] += f"\n{more}"
    return policy


def _rolled(ground: Ground) -> object:
    """Return a value that changes if the scheduler restarts."""
    label = "fairlead.dev/scheduler=fairlead,app.kubernetes.io/component=scheduler"
    pods = ground.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=label)
    restarts = [
        (one["metadata"]["uid"], sum(each["restartCount"] for each in one["status"].get("containerStatuses", ())))
        for one in pods
    ]
    return ground.api.get(_DEPLOYMENT)["metadata"]["generation"], sorted(restarts)
