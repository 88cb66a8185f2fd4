# The command line in a small image. Mount the data folder and use your own user id:
#   docker build --tag mixda .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" mixda info plant.csv

FROM python:3.12 AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
# Tests, headers, debugging symbols of POT (170 MB) and the network protocol of Arrow (32 MB) are not needed.
RUN python -m venv /opt/mixda \
    && /opt/mixda/bin/pip install --no-cache-dir --no-compile '.[cli]' \
    && /opt/mixda/bin/pip uninstall --yes pip \
    && find /opt/mixda -type d \( -name tests -o -name include -o -name __pycache__ \) -prune -exec rm -rf {} + \
    && find /opt/mixda -path '*/site-packages/ot/*' -name '*.so' -exec strip --strip-debug {} + \
    && find /opt/mixda -path '*/pyarrow/*flight*' -delete \
    && /opt/mixda/bin/mixda --version

FROM python:3.12-slim
COPY --from=build /opt/mixda /opt/mixda
RUN useradd --uid 1000 --create-home mixda && mkdir /data && chown mixda /data
ENV PATH=/opt/mixda/bin:$PATH PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
USER 1000:1000
WORKDIR /data
ENTRYPOINT ["mixda"]
CMD ["--help"]
