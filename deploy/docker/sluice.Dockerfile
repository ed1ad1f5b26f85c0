# The static binary and nothing else: control plane, worker, runtime, media
# product, `seed`, `certs` and every command. deploy/docker/bake makes the folder.
FROM scratch
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --chown=65532:65532 state /state
COPY --chown=65532:65532 state /certs
COPY --chown=65532:65532 state /each/controlplane
COPY --chown=65532:65532 state /each/edge-1
COPY --chown=65532:65532 state /each/edge-2
COPY --chown=65532:65532 state /each/edge-3
COPY sluice /sluice
ENV SLUICE_STATE_DIR=/state
USER 65532:65532
ENTRYPOINT ["/sluice"]
