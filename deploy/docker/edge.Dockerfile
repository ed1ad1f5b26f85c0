# An edge: Envoy, and the binary that supervises it and has the filters in it. The base has
# Envoy at /usr/local/bin/envoy: the official image, or the local one.
ARG BASE=envoyproxy/envoy:v1.40.0
FROM ${BASE}
COPY --chown=65532:65532 state /state
COPY sluice /sluice
ENV SLUICE_STATE_DIR=/state SLUICE_ENVOY=/usr/local/bin/envoy
USER 65532:65532
ENTRYPOINT ["/sluice"]
CMD ["edge"]
