package xds

import (
	"context"
	"maps"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// PublishCertificates makes secrets, by slot, the certificates that edges show. What is
// not altered must be the message of before: then it is not looked at. It waits for
// edges, as Publish does, only where listeners come to name more slots: they must have
// what is in those first, since a listener without one of its secrets serves nobody.
func (s *Server) PublishCertificates(ctx context.Context, secrets map[int]*tlsv3.Secret) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	slots := resources.Slots(slices.Collect(maps.Keys(secrets)))
	next := make(map[string]*tlsv3.Secret, slots)
	for slot := range slots {
		secret := secrets[slot]
		if secret == nil {
			secret = resources.UnusedSecret(slot)
		}
		if was := s.certificates[secret.Name]; was != nil && secrets[slot] == nil && unchanged(was, secret) {
			secret = was
		}
		next[secret.Name] = secret
	}
	before := s.certificates
	s.certificates = union(before, next) // those that listeners still name as well
	if s.current == nil {                // the first publication serves them
		s.certificates = next
		s.caches.setSlots(slots)
		return nil
	}
	if err := s.setSecrets(); err != nil {
		return err
	}
	if len(before) == len(next) {
		return nil
	}
	s.caches.setSlots(slots)
	if err := s.caches.setListeners(s.current); err != nil {
		return err
	}
	s.await(ctx, s.version)
	s.certificates = next
	return s.setSecrets()
}

func (s *Server) setSecrets() error {
	return s.caches.set(resource.SecretType, asCollection(union(s.current.Secrets, s.certificates)))
}

// unchanged reports whether two secrets of one slot have the same chain.
func unchanged(a, b *tlsv3.Secret) bool {
	return string(a.GetTlsCertificate().GetCertificateChain().GetInlineBytes()) == string(b.GetTlsCertificate().GetCertificateChain().GetInlineBytes())
}
