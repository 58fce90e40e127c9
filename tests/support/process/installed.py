"""`fairlead operate` with the arguments and the permissions that the chart gives it, outside of the cluster."""

import sys
from pathlib import Path

import fairlead
from support.chart.chart import NAMESPACE, template
from support.kube.service_account import kubeconfig_of
from support.process.operating import HOST, Operating
from testbed.process import Component

_OWN = f"/api/v1/namespaces/{NAMESPACE}"


class Installed(Operating):
    """One replica, as its Deployment says; but for where it listens, and how it finds the cluster."""

    def _component(self) -> Component:
        (deployment,) = [one for one in template() if one["kind"] == "Deployment"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        file = self.folder / "settings.yaml"
        file.write_text(self.cluster.api.get(f"{_OWN}/configmaps/fairlead-settings")["data"][file.name])
        config = kubeconfig_of(self.cluster, NAMESPACE, "fairlead", self.folder)
        given = [one for one in container["args"] if not one.startswith("--settings=")]
        listens = zip(("listen", "probes", "admission"), self.ports, strict=True)
        command = [sys.executable, "-m", "fairlead", *given, f"--settings={file}", f"--kubeconfig={config}"]
        command += [f"--{name}={HOST}:{port}" for name, port in listens]
        pod = {"POD_NAME": "some", "POD_UID": "some-uid", "POD_NAMESPACE": NAMESPACE, "POD_IP": HOST}
        source = str(Path(fairlead.__file__).parents[1])
        return Component(self.name, command, {"PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1", **pod})
