"""Ask the API server, in dry runs, for a good policy and a wrong one; used by `helm test`."""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NAME = "helm-test-of-the-admission-check"


def create(expression: str) -> tuple[int, str]:
    """Return the status and the text of the answer to the creation of a policy, which is stored in no case."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": NAME},
        "spec": {"filters": [{"name": "test", "expression": expression}]},
    }
    request = urllib.request.Request(
        f"https://{host}:{port}/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies?dryRun=All",
        json.dumps(policy).encode(),
        {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"},
    )
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    try:
        with opener.open(request, timeout=45) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


status, text = create("node.metadata.name != 'some'")
if status != 201:
    sys.exit(f"a good policy is not accepted: {status} {text}")
print("a good policy is accepted")
status, text = create("node.metadata.nam != 'some'")
if status == 201:
    sys.exit(
        "a wrong policy is accepted: the API server does not reach the admission check. Let it reach the admission "
        "port of the operator's pods, or set ports.admission to a port that it reaches, or hostNetwork: true"
    )
if status != 422 or "spec.filters[0].expression" not in text:
    sys.exit(f"a wrong policy is refused for another reason than its mistake: {status} {text}")
print("a wrong policy is denied")
