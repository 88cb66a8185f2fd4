# The command line in a small image. Mount the data folder and use your own user id:
#   docker build --tag mixda .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" mixda info plant.csv

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/mixda \
    && /opt/mixda/bin/pip install --no-cache-dir --no-compile '.[cli]' \
    && /opt/mixda/bin/pip uninstall --yes pip \
    && find /opt/mixda -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +

FROM python:3.12-slim
COPY --from=build /opt/mixda /opt/mixda
RUN useradd --uid 1000 --create-home mixda && mkdir /data && chown mixda /data
ENV PATH=/opt/mixda/bin:$PATH PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
USER mixda
WORKDIR /data
ENTRYPOINT ["mixda"]
CMD ["--help"]
