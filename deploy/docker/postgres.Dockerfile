# PostgreSQL as this machine has it, for where no registry is reached.
FROM scratch
ARG BIN
COPY root /
COPY --chown=999:999 data /var/lib/postgresql/data
ENV PATH=${BIN}:/bin
USER 999:999
STOPSIGNAL SIGINT
ENTRYPOINT ["/entry.sh"]
