package certs

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/apierror"
)

// Names reports whether the certificate that the other side of a connection
// showed is that of the named edge: the name is one of its DNS names, exactly.
func Names(state *tls.ConnectionState, edge string) bool {
	if state == nil || len(state.VerifiedChains) == 0 || edge == "" || edge == ControlPlane {
		return false
	}
	return slices.Contains(state.VerifiedChains[0][0].DNSNames, edge)
}

// StreamNames is Names for the connection of a gRPC stream's context.
func StreamNames(ctx context.Context, edge string) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	return ok && Names(&info.State, edge)
}

// Guard hands requests that name another edge in edgeapi.EdgeHeader than their
// certificate does to refuse, and others to next.
func Guard(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if named := r.Header.Values(edgeapi.EdgeHeader); len(named) > 1 || (len(named) == 1 && !Names(r.TLS, named[0])) {
			refuse(w, r, apierror.Errorf(decision.InvalidKey, "The certificate is not that of the edge named in %s.", http.CanonicalHeaderKey(edgeapi.EdgeHeader)))
			return
		}
		next.ServeHTTP(w, r)
	})
}
