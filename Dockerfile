# The image of the operator. `make image` builds it with what this machine has; by hand:
#
#     docker build -t fairlead .
#     docker build -t fairlead --platform linux/arm64 .           # no emulation is needed: nothing of that platform is run
#     docker build -t fairlead --build-context wheels=FOLDER .    # without a network: a folder of the wheels in the locks
#
# Docker without buildx, and older Podman and buildah, do not say on what they build, and linux/amd64 is assumed: elsewhere add
# `--build-arg BUILDPLATFORM=linux/arm64`.
#
# RUNTIME is what the image stands on: glibc 2.34, Python 3.11 or newer, libstdc++; it needs no shell. BUILDER is what runs here:
# the same minor version of Python, with pip and a shell. A tag may be another image tomorrow, so both are named by digest, and a
# registry tells that of a tag:
#
#     docker buildx imagetools inspect docker.io/library/python:3.13-slim --format '{{.Manifest.Digest}}'
ARG BUILDER=docker.io/library/python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
ARG RUNTIME=docker.io/library/python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

ARG BUILDPLATFORM=${BUILDPLATFORM:-linux/amd64}

FROM ${RUNTIME} AS runtime

FROM --platform=${BUILDPLATFORM} ${BUILDER} AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONHASHSEED=0
# What pip is told of a platform that it does not run on. An engine that does not say for what it builds, builds for its own.
ARG TARGETARCH
RUN case "${TARGETARCH:-$(uname -m)}" in \
      amd64|x86_64) machine=x86_64 ;; \
      arm64|aarch64) machine=aarch64 ;; \
      *) echo "there are no packages of the rule language's engine for ${TARGETARCH:-$(uname -m)}" >&2; exit 1 ;; \
    esac \
 && for abi in manylinux_2_34 manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux_2_12 manylinux2010 \
               manylinux_2_5 manylinux1 linux; do printf -- '--platform=%s_%s ' "${abi}" "${machine}"; done > /platforms \
 && echo "${machine}" > /machine

FROM builder AS download
COPY requirements.lock requirements-build.lock /locks/
# hadolint ignore=SC2046
RUN python3 -m pip download --quiet --only-binary :all: --require-hashes --dest /wheels $(cat /platforms) -r /locks/requirements.lock \
 && python3 -m pip download --quiet --only-binary :all: --require-hashes --dest /wheels -r /locks/requirements-build.lock

FROM scratch AS wheels
COPY --from=download /wheels /

# From here on nothing is fetched. What changes seldom comes first.
# What the image stands on, without what nothing needs once it is made: shells and pip. The environment's Python is the one in it.
FROM builder AS base
COPY --from=runtime / /target/
RUN minor=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])') \
 && for folder in /usr/local/bin /usr/bin; do [ ! -e "/target${folder}/${minor}" ] || break; done \
 && if [ ! -e "/target${folder}/${minor}" ]; then echo "BUILDER has ${minor}, and RUNTIME has not" >&2; exit 1; fi \
 && rm -rf /target/usr/local/bin/pip* /target/usr/bin/pip* \
        /target/usr/local/lib/python3*/site-packages/pip* /target/usr/lib/python3/dist-packages/pip* \
        /target/usr/local/lib/python3*/ensurepip /target/usr/lib/python3*/ensurepip \
        /target/bin/*bash /target/bin/dash /target/bin/sh /target/usr/bin/*bash /target/usr/bin/dash /target/usr/bin/sh \
 && mkdir -p /target/opt/fairlead/bin /target/opt/fairlead/strategies \
 && ln -s "${folder}/${minor}" /target/opt/fairlead/bin/python3 \
 && ln -s python3 /target/opt/fairlead/bin/python \
 && printf 'home = %s\ninclude-system-site-packages = false\n' "${folder}" > /target/opt/fairlead/pyvenv.cfg

# The models and typed calls of the official client are not used but for a few of kopf's, and their byte code would be 47 MB.
# Byte code does not say when its source was written: nothing is compared at a start, and the same source gives the same image.
FROM builder AS dependencies
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
COPY --from=wheels / /wheels/
COPY requirements.lock requirements-build.lock /locks/
COPY scripts/release/notices.py /source/
# hadolint ignore=SC2046
RUN python3 -m venv --without-pip /opt/fairlead \
 && packages=$(echo /opt/fairlead/lib/python3.*/site-packages) \
 && python3 -m pip install --quiet --no-compile --only-binary :all: --require-hashes --target "${packages}" $(cat /platforms) \
        -r /locks/requirements.lock \
 && rm -rf "${packages:?}/bin" \
 && python3 -m compileall -q --invalidation-mode unchecked-hash \
        -x 'kubernetes/(aio/)?client/(api|models)/(?!__init__|v1_(object_meta|owner_reference|managed_fields_entry)\.py)' \
        /opt/fairlead/lib \
 && python3 /source/notices.py "${packages}" > /opt/fairlead/THIRD_PARTY_LICENCES \
 && if [ "$(uname -m)" = "$(cat /machine)" ]; then \
      /opt/fairlead/bin/python -c 'import cel_expr_python.cel, cryptography.x509, pydantic, re2'; \
    fi

FROM dependencies AS product
RUN python3 -m pip install --quiet --require-hashes --target /build-tools -r /locks/requirements-build.lock
COPY pyproject.toml README.md LICENSE /source/
COPY operator /source/operator
COPY templates /source/templates
WORKDIR /source
RUN PYTHONPATH=/build-tools python3 -m hatchling build --target wheel --directory /wheel \
 && python3 -m pip --python /opt/fairlead/bin/python install --quiet --no-compile --no-warn-script-location --no-deps \
        --root /product /wheel/*.whl \
 && cp LICENSE /product/opt/fairlead/ \
 && python3 -m compileall -q --invalidation-mode unchecked-hash -s /product /product

# An image of one's own adds strategies with `COPY spread.py /opt/fairlead/strategies/`. No command runs from here on.
FROM scratch
COPY --from=base /target /
COPY --from=dependencies /opt/fairlead/lib /opt/fairlead/lib
COPY --from=dependencies /opt/fairlead/THIRD_PARTY_LICENCES /opt/fairlead/
COPY --from=product /product /
ENV PATH=/opt/fairlead/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["fairlead"]
ARG VERSION=
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="Fairlead" \
      org.opencontainers.image.description="Change where Kubernetes pods are placed by applying a policy" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The Fairlead authors" \
      org.opencontainers.image.source="https://github.com/fairlead-dev/fairlead" \
      org.opencontainers.image.documentation="https://github.com/fairlead-dev/fairlead/tree/main/docs" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
