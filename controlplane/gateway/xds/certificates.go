package xds

import (
	"context"
	"maps"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// PublishCertificates makes secrets, by host, the certificates that edges show. What is
// not altered must be the message of before: then it is not looked at. A host that is
// new, or gone, alters listeners too. Edges then get the secret before the listener
// leads to it, and the listener that does not before the secret goes; like Publish it
// waits for edges in between.
func (s *Server) PublishCertificates(ctx context.Context, secrets map[string]*tlsv3.Secret) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	before := s.certificates
	next := maps.Clone(secrets)
	names := namesOf(next)
	same := slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(next)))
	if s.current == nil { // the first publication serves them
		s.certificates = next
		s.caches.setNames(names)
		return nil
	}
	s.certificates = union(before, next)
	if err := s.setSecrets(); err != nil || same {
		return err
	}
	s.caches.setNames(names)
	if err := s.caches.setListeners(s.current); err != nil {
		return err
	}
	s.await(ctx, s.version)
	s.certificates = next
	return s.setSecrets()
}

// namesOf are the hosts of secrets; nil: there are none.
func namesOf(secrets map[string]*tlsv3.Secret) *resources.Names {
	if len(secrets) == 0 {
		return nil
	}
	n := &resources.Names{}
	for _, host := range slices.Sorted(maps.Keys(secrets)) {
		if strings.HasPrefix(host, "*.") {
			n.Wildcards = append(n.Wildcards, host)
		} else {
			n.Exact = append(n.Exact, host)
		}
	}
	return n
}

func (s *Server) setSecrets() error {
	return s.caches.set(resource.SecretType, asCollection(union(s.certificates, s.current.Secrets)))
}
