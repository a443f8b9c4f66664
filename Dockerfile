# One of Semel's programs, and nothing that it does not need:
#   docker build --build-arg PACKAGE=semel-broker --tag semel-broker:0.1.0 .
# PACKAGE: semel-coordinator, semel-broker, semel-group, semel (all of Semel), semel-pipelines (with Spark).
# It has no entry point: k8s/ says what runs, as `python3 -m semel_broker`.
#
# A whole cluster, and every command, in one image:
#   docker build --target cluster --build-arg PACKAGE=semel --tag semel:0.1.0 .
#   docker run --rm --name semel --network host --volume semel:/data semel:0.1.0 up
# The tag, as it was published with Python 3.14.7 for all processors; `docker buildx imagetools inspect` tells of newer.
ARG BASE_IMAGE=python:3.14-slim@sha256:cad9a2c871761c413caa6fdd6441c783451e740a48aaeba60ae62a8b53525ef6

FROM ${BASE_IMAGE} AS build
# A base may run as somebody else: Spark's does.
USER 0
ARG PACKAGE
ARG UV_VERSION=0.13.8
ENV UV_PROJECT_ENVIRONMENT=/opt/semel UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --quiet --no-cache-dir uv==${UV_VERSION}
COPY . .
# As locked, every file by its hash; compiled here, because nothing can be written where it runs.
RUN test -n "${PACKAGE}" && /opt/uv/bin/uv sync --quiet --no-cache --frozen --no-default-groups --no-editable \
        --compile-bytecode --all-extras --package "${PACKAGE}"

FROM ${BASE_IMAGE} AS program
ARG PACKAGE
LABEL org.opencontainers.image.title=${PACKAGE} \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /opt/semel /opt/semel
ENV PATH=/opt/semel/bin:${PATH} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /tmp

# The data folder and the address of a cluster lie in the volume, where other commands in the same container find them.
FROM program AS cluster
USER 0
RUN install --directory --owner=65532 --group=65532 --mode=700 /data
USER 65532:65532
ENV XDG_DATA_HOME=/data XDG_STATE_HOME=/data/state
VOLUME /data
ENTRYPOINT ["semel"]
CMD ["--help"]

# The default: a program without an entry point.
FROM program
