# One image for Dagster's page, its daemon, the health endpoint and every command; compose.yaml says which runs what.

# a digest makes the build repeatable: --build-arg BASE=python:3.11-slim-bookworm@sha256:…
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
RUN python -m venv /opt/venv
COPY constraints.txt LICENSE pyproject.toml README.md ./
COPY health_assets ./health_assets
# more readers of logs are extras of their own: gcs, azure, inspect; judge is the model that judges safety
ARG EXTRAS=collect,postgres,s3
# without the packages' own tests and headers, and pip, which are a fifth of it
RUN /opt/venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]" \
    && find /opt/venv -type d -name tests -prune -exec rm -r {} + \
    && rm -r /opt/venv/lib/python3.*/site-packages/pyarrow/include \
    && /opt/venv/bin/pip uninstall --yes pip

FROM ${BASE}
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin health
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/tmp/cache \
    DAGSTER_HOME=/srv/dagster \
    HEALTH_RAW=/logs
# Dagster keeps runs and events in PostgreSQL, and what steps print in its home
COPY --chown=health docs/dagster-postgres.yaml /srv/dagster/dagster.yaml
RUN mkdir -p /srv/dagster/storage /srv/health-assets/data && chown -R health /srv/dagster /srv/health-assets
WORKDIR /srv/health-assets
COPY workspace.yaml ./
COPY deploy/workspace.yaml ./code-server.yaml
USER health
EXPOSE 3000 4318 8080
CMD ["health-assets", "--help"]
