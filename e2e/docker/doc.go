// Package docker drives the platform as deploy/docker/compose.yaml runs it, and
// kills containers as it goes. Its tests need a docker engine and the images of
// `make docker`: `make e2e-docker` runs them, with the build tag docker.
package docker
