# The controller as an image: docker build -t registry.example/optimus-scheduler:0.1.0 .
#
# Slim, exactly the packages of requirements.lock with their hashes, no compiler, no root. It writes nothing: run it
# with a read-only root file system, as `optimus install` and the chart do.

FROM python:3.11-slim AS built
WORKDIR /build
RUN python -m venv /optimus
COPY requirements.lock ./
# The lock also has what only tests and checks need; the image gets what the package itself asks for.
COPY hack/image_packages.py ./
COPY pyproject.toml ./
RUN python image_packages.py pyproject.toml requirements.lock > image.lock && \
    /optimus/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes -r image.lock
COPY README.md LICENSE ./
COPY src src
RUN /optimus/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . && \
    /optimus/bin/pip uninstall --yes setuptools wheel pip && \
    find /optimus -name tests -type d -path '*site-packages*' -prune -exec rm -rf {} +
# Once, here: its file system cannot be written to, so every start would compile every module again. Files are taken for
# what they are and not looked at (unchecked-hash): nobody changes them, and their times may change when they are copied.
RUN python -m compileall -q --invalidation-mode unchecked-hash /optimus/lib

FROM python:3.11-slim
# The base image has none of the standard library compiled; what nobody here imports stays as it is.
RUN python -m compileall -q --invalidation-mode unchecked-hash \
    -x '/(test|tests|idlelib|lib2to3|tkinter|turtledemo|ensurepip|site-packages)/' /usr/local/lib/python3.11
COPY --from=built /optimus /optimus
ENV PATH=/optimus/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OPENBLAS_NUM_THREADS=1 HOME=/tmp
USER 65532:65532
ENTRYPOINT ["optimus"]
CMD ["controller"]
