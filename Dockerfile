# One image for Dagster's page, its daemon, the health endpoint and every command; compose.yaml says which runs what.

FROM python:3.11-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/venv
COPY constraints.txt LICENSE pyproject.toml README.md ./
COPY health_assets ./health_assets
# more readers of logs are extras of their own: gcs, azure, inspect; judge is the model that judges safety
ARG EXTRAS=postgres,s3
RUN /opt/venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin health
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DAGSTER_HOME=/srv/dagster \
    HEALTH_RAW=/logs
# Dagster keeps runs and events in PostgreSQL, and what steps print in its home
COPY --chown=health docs/dagster-postgres.yaml /srv/dagster/dagster.yaml
RUN mkdir -p /srv/dagster/storage /srv/health-assets && chown -R health /srv/dagster /srv/health-assets
WORKDIR /srv/health-assets
COPY workspace.yaml ./
COPY deploy/workspace.yaml ./code-server.yaml
USER health
EXPOSE 3000 8080
CMD ["health-assets", "--help"]
