# The media product, its engine and the worker: the static binary, and the programs that
# take streams, convert, listen, speak and read. imagebuild makes the folder, and passes the variables by which
# processes find them; root has the libraries that they load.
FROM scratch
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --chown=65532:65532 state /state
COPY root /
COPY sluice /sluice
ARG SLUICE_MEDIA_ENGINE
ARG SLUICE_FFMPEG
ARG SLUICE_SPEECH
ARG SLUICE_VOICE
ARG SLUICE_TESSERACT
ENV SLUICE_STATE_DIR=/state SLUICE_MEDIA_ENGINE=$SLUICE_MEDIA_ENGINE SLUICE_FFMPEG=$SLUICE_FFMPEG SLUICE_SPEECH=$SLUICE_SPEECH SLUICE_VOICE=$SLUICE_VOICE SLUICE_TESSERACT=$SLUICE_TESSERACT
USER 65532:65532
ENTRYPOINT ["/sluice"]
