# The image of the operator.
#
#     docker build -t fairlead .
#     docker build -t fairlead --build-context wheels=FOLDER .    # without a network: a folder of the wheels in the locks
#
# BASE is any image with glibc 2.34, Python 3.11 and its pip, or newer ones.
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS download
COPY requirements.lock requirements-build.lock /locks/
RUN python3 -m pip download --quiet --only-binary :all: --require-hashes --dest /wheels \
        -r /locks/requirements.lock -r /locks/requirements-build.lock

FROM scratch AS wheels
COPY --from=download /wheels /

# From here on nothing is fetched. What changes seldom comes first.
FROM ${BASE} AS build
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY --from=wheels / /wheels/
COPY requirements.lock requirements-build.lock /locks/
# Byte code says nothing of its source's time: it is not compared at each start, and the same source gives the same image.
RUN python3 -m venv --without-pip /opt/fairlead \
 && python3 -m pip --python /opt/fairlead/bin/python install --quiet --no-compile --require-hashes -r /locks/requirements.lock \
 && python3 -m pip install --quiet --require-hashes --target /build-tools -r /locks/requirements-build.lock \
 && /opt/fairlead/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/fairlead/lib
COPY pyproject.toml README.md LICENSE /source/
COPY operator /source/operator
RUN cd /source \
 && PYTHONPATH=/build-tools python3 -m hatchling build --target wheel --directory /wheel \
 && python3 -m pip --python /opt/fairlead/bin/python install --quiet --no-compile --no-deps /wheel/*.whl \
 && /opt/fairlead/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/fairlead/lib/python*/site-packages/fairlead

FROM ${BASE}
LABEL org.opencontainers.image.title="Fairlead" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/fairlead /opt/fairlead
ENV PATH=/opt/fairlead/bin:${PATH} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["fairlead"]
