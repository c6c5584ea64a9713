# Sellerwatch in a container: built in one stage, run in another that holds nothing but Python and what runs.
# Targets: sellerwatch (the default, the last one) and ministack, the stand-in for AWS that compose.yaml uses.

FROM python:3.11-slim AS built
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/sellerwatch
COPY requirements-setup.lock requirements.lock ./
RUN /opt/sellerwatch/bin/pip install --no-cache-dir --require-hashes -r requirements-setup.lock \
 && /opt/sellerwatch/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml requirements.in README.md LICENSE ./
COPY src src
RUN /opt/sellerwatch/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/sellerwatch/bin/pip uninstall --yes uv setuptools pip

FROM python:3.11-slim AS ministack
COPY requirements-ministack.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-ministack.lock
RUN useradd --system --uid 10002 ministack
USER 10002
ENV GATEWAY_PORT=4566 HOME=/tmp
EXPOSE 4566
CMD ["ministack"]

FROM python:3.11-slim AS sellerwatch
RUN useradd --system --uid 10001 --home-dir /nonexistent sellerwatch
COPY --from=built /opt/sellerwatch /opt/sellerwatch
ENV PATH=/opt/sellerwatch/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 SELLERWATCH_LOG_FORMAT=json
USER 10001
WORKDIR /tmp
EXPOSE 8080
# One answer for every role: alive and what it needs answers. An orchestrator that restarts on health asks /health/live.
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health/ready', timeout=3)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["sellerwatch"]
CMD ["--help"]
