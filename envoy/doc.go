// Package envoy finds, configures and supervises Envoy.
//
// Find chooses the binary. Render writes the bootstrap: no listener and no
// route stands in it, everything that may change comes from the control plane
// by delta ADS. Edge runs one Envoy: a standby listener holds its addresses and
// answers 503 with Retry-After while Envoy has no listeners yet or is being restarted,
// so that a starting edge is never a pass and never a refused connection.
package envoy
