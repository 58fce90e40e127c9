"""The command `python -m release`, which the Makefile's targets call."""

import argparse
import sys
from collections.abc import Sequence

from release import audit, bump, bundle, chart, dist, image, lint, manifests, publish, pythons, sbom
from release.project import ReleaseError, say
from testbed.errors import ClusterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; 1 when it failed, with what to do on standard error."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    steps.add_parser("dist", help=dist.__doc__).set_defaults(run=lambda _: dist.main())
    steps.add_parser("audit", help=audit.__doc__).set_defaults(run=lambda _: audit.main())
    steps.add_parser("binary", help=bundle.__doc__).set_defaults(run=lambda _: bundle.main())
    steps.add_parser("chart", help=chart.__doc__).set_defaults(run=lambda _: chart.main())
    build = steps.add_parser("image", help=image.__doc__)
    build.add_argument("--push", default="", metavar="REGISTRY/PATH")
    build.add_argument("--tag", default="", help="the version by default")
    build.set_defaults(run=lambda of: image.main(engine=of.engine, platforms=of.platforms, push=of.push, tag=of.tag))
    content = steps.add_parser("sbom", help=sbom.__doc__)
    content.add_argument("archive", nargs="?", default="", help="what `docker save` wrote; else the image is built")
    content.set_defaults(run=lambda of: sbom.main(of.archive))
    push = steps.add_parser("publish", help=publish.__doc__)
    push.add_argument("registry", nargs="?", default="")
    push.set_defaults(run=lambda of: publish.main(of.registry, engine=of.engine, platforms=of.platforms))
    upload = steps.add_parser("upload", help=publish.upload.__doc__)
    upload.add_argument("to", choices=("pypi", "github"))
    upload.set_defaults(run=lambda of: publish.upload(of.to))
    version = steps.add_parser("release", help=bump.__doc__)
    version.add_argument("version", nargs="?", default="")
    version.set_defaults(run=lambda of: bump.main(of.version))
    tried = steps.add_parser("test-pythons", help=pythons.__doc__)
    tried.add_argument("--versions", nargs="*", default=(), metavar="3.N", help="all that are supported by default")
    tried.add_argument("--tests", nargs="*", default=(), metavar="FOLDER", help="all unit tests by default")
    tried.set_defaults(run=lambda of: pythons.main(of.versions, of.tests))
    steps.add_parser("lint", help=lint.__doc__).set_defaults(run=lambda _: lint.main())
    signature = steps.add_parser("sign", help=publish.sign.__doc__)
    signature.add_argument("--key", default="", metavar="FILE|URI", help="the identity of the workflow by default")
    signature.set_defaults(run=lambda of: publish.sign(of.key))
    local = steps.add_parser("publish-local", help=publish.local.__doc__)
    local.add_argument("--port", type=int, default=5000)
    local.set_defaults(run=lambda of: publish.local(platforms=of.platforms, port=of.port))
    for step in (build, push):
        step.add_argument("--engine", default="", metavar="|".join(image.ENGINES))
    for step in (build, push, local):
        step.add_argument("--platforms", nargs="*", default=(), metavar="amd64|arm64")
    rendered = steps.add_parser("manifests", help=manifests.__doc__)
    rendered.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="a value of the chart")
    rendered.set_defaults(run=lambda options: manifests.main([f"--set={one}" for one in options.set]))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (ReleaseError, ClusterError) as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
