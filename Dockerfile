# A server of model files: docker run -v ./models:/models:ro IMAGE /models/m.caveat
FROM python:3.12-slim
# no_proxy: the check of health below asks this container, whatever proxy it is given.
ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 no_proxy=127.0.0.1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
# The CPU build of PyTorch is a tenth of the one with CUDA: give the index that has it by
# --build-arg PIP_EXTRA_INDEX_URL=…
ARG PIP_EXTRA_INDEX_URL
RUN pip install '.[serve,files]' \
    && useradd --system --no-create-home caveat
USER caveat
WORKDIR /
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/v2/health/ready')"]
ENTRYPOINT ["caveat", "serve", "--host", "0.0.0.0", "--port", "8080"]
