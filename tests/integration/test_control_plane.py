from testbed.fixtures import Cluster, Kubectl, StartScheduler


def test_the_api_server_says_its_true_version(control_plane: Cluster, kubectl: Kubectl) -> None:
    assert control_plane.api.get("/version")["gitVersion"] == f"v{control_plane.kubernetes}"
    assert f"Client Version: v{control_plane.kubernetes}" in kubectl("version", "--client")


def test_a_scheduler_of_its_own_starts(control_plane: Cluster, scheduler: StartScheduler, namespace: str) -> None:
    started = scheduler({"profiles": [{"schedulerName": "other"}]})
    assert started.says()
