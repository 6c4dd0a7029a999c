# sgtune needs cgo (NVML, SQLite), so its base is a glibc one.
# Build offline tests of this file with another base: --build-arg BUILDER=... --build-arg BASE=...
ARG BUILDER=golang:1.26-bookworm
ARG BASE=debian:bookworm-slim

FROM ${BUILDER} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make agent && CGO_ENABLED=1 go build -trimpath -ldflags="-s -w" -o /out/sgtune ./cmd/sgtune

FROM ${BASE}
# The version is the distribution's: a pinned one would stop building with the first security update.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 sgtune
COPY --from=build /out/sgtune /usr/local/bin/sgtune
USER 10001
WORKDIR /home/sgtune
EXPOSE 8090
ENTRYPOINT ["sgtune"]
