# An image of files that this machine has: Envoy, or PostgreSQL, with the libraries
# that they need. For where no registry is reached.
FROM scratch
COPY . /
