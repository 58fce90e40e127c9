# The image of the operator.
#
#     docker build -t fairlead .
#     docker build -t fairlead --build-context wheels=FOLDER .    # without a network: a folder of the wheels in the locks
#
# BASE is any image with glibc 2.34, Python 3.11 and its pip, or newer ones, and libstdc++. A tag may be another image tomorrow;
# a build that is to be the same again names the digest, which a registry tells for a tag:
#
#     docker buildx imagetools inspect docker.io/library/python:3.13-slim --format '{{.Manifest.Digest}}'
#     docker build -t fairlead --build-arg BASE=docker.io/library/python:3.13-slim@sha256:... .
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS download
COPY requirements.lock requirements-build.lock /locks/
RUN python3 -m pip download --quiet --only-binary :all: --require-hashes --dest /wheels \
        -r /locks/requirements.lock -r /locks/requirements-build.lock

FROM scratch AS wheels
COPY --from=download /wheels /

# From here on nothing is fetched. What changes seldom comes first.
# The models and typed calls of the official client are not used but for a few of kopf's, and their byte code would be 47 MB.
# Byte code does not say when its source was written: nothing is compared at a start, and the same source gives the same image.
FROM ${BASE} AS dependencies
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    PYTHONHASHSEED=0
COPY --from=wheels / /wheels/
COPY requirements.lock requirements-build.lock /locks/
RUN python3 -m venv --without-pip /opt/fairlead \
 && python3 -m pip --python /opt/fairlead/bin/python install --quiet --no-compile --require-hashes -r /locks/requirements.lock \
 && /opt/fairlead/bin/python -m compileall -q --invalidation-mode unchecked-hash \
        -x 'kubernetes/(aio/)?client/(api|models)/(?!__init__|v1_(object_meta|owner_reference|managed_fields_entry)\.py)' \
        /opt/fairlead/lib \
 && /opt/fairlead/bin/python -c 'import cel_expr_python.cel, cryptography.x509, pydantic, re2'

FROM dependencies AS product
RUN python3 -m pip install --quiet --require-hashes --target /build-tools -r /locks/requirements-build.lock
COPY pyproject.toml README.md LICENSE /source/
COPY operator /source/operator
COPY templates /source/templates
RUN cd /source \
 && PYTHONPATH=/build-tools python3 -m hatchling build --target wheel --directory /wheel \
 && python3 -m pip --python /opt/fairlead/bin/python install --quiet --no-compile --no-warn-script-location --no-deps \
        --root /product /wheel/*.whl \
 && mkdir /product/opt/fairlead/strategies \
 && /opt/fairlead/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /product /product

# An image of one's own adds strategies with `COPY spread.py /opt/fairlead/strategies/`.
FROM ${BASE}
LABEL org.opencontainers.image.title="Fairlead" org.opencontainers.image.licenses="Apache-2.0"
# Nothing needs a shell or pip once the image is made. No command can come after this one.
RUN rm -rf /usr/local/bin/pip* /usr/bin/pip* /usr/local/lib/python3*/site-packages/pip* /usr/lib/python3/dist-packages/pip* \
        /usr/local/lib/python3*/ensurepip /usr/lib/python3*/ensurepip \
        /bin/*bash /bin/dash /bin/sh /usr/bin/*bash /usr/bin/dash /usr/bin/sh
COPY --from=dependencies /opt/fairlead /opt/fairlead
COPY --from=product /product /
ENV PATH=/opt/fairlead/bin:${PATH} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["fairlead"]
