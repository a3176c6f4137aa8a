# tracequet in a small image, without a shell and not as root. Build: docker build -t tracequet .
# Run: docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" tracequet convert traces -o lake
FROM rust:1-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --bin tracequet \
    && cp target/release/tracequet /tracequet \
    && /tracequet --version

# The C library of the same Debian, and nothing else.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /tracequet /usr/local/bin/tracequet
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/tracequet"]
CMD ["--help"]
