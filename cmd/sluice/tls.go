package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"sluice.dev/sluice/envoy"
	"sluice.dev/sluice/platform/certs"
	"sluice.dev/sluice/platform/http/httpapi"
)

// follow runs sources until ctx ends.
func follow(ctx context.Context, sources []*certs.Source) {
	for _, s := range sources {
		go s.Run(ctx)
	}
}

// mutual is what edges and the control plane show each other.
type mutual struct{ source *certs.Source } // nil: plain text, and an edge is whom it says

// mutual is the control plane's side: plain text without SLUICE_XDS_TLS_DIR.
func (e environment) mutual() (mutual, error) { return e.mutualOf(certs.ControlPlane) }

func (e environment) mutualOf(name string) (mutual, error) {
	dir := e.get("SLUICE_XDS_TLS_DIR")
	if dir == "" {
		return mutual{}, nil
	}
	s, err := certs.Open(certs.SourceConfig{Files: certs.In(dir, name)})
	if err != nil {
		return mutual{}, fmt.Errorf("SLUICE_XDS_TLS_DIR: %w", err)
	}
	return mutual{s}, nil
}

func (m mutual) sources() []*certs.Source {
	if m.source == nil {
		return nil
	}
	return []*certs.Source{m.source}
}

// client is how an edge calls the control plane.
func (m mutual) client() *tls.Config {
	if m.source == nil {
		return nil
	}
	return m.source.Client(certs.ControlPlane)
}

func (m mutual) run(ctx context.Context) {
	if m.source != nil {
		m.source.Run(ctx)
	}
}

func (m mutual) tls() *tls.Config {
	if m.source == nil {
		return nil
	}
	return m.source.Mutual()
}

func (m mutual) named() func(context.Context, string) bool {
	if m.source == nil {
		return nil
	}
	return certs.StreamNames
}

func (m mutual) guard(h http.Handler, adapter httpapi.Adapter) http.Handler {
	if m.source == nil {
		return h
	}
	return certs.Guard(h, adapter.Error)
}

// mutualEdge is the edge's side of mutual.
func (e environment) mutualEdge(name string) (mutual, error) { return e.mutualOf(name) }

// secure puts the certificate that clients see, if there is one, where Envoy
// finds it, and into cfg what is to be done with it. The sources keep it current.
func (e environment) secure(cfg *envoy.EdgeConfig) ([]*certs.Source, error) {
	files, err := e.clientFiles()
	if err != nil || files == (certs.Files{}) {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(cfg.StateDir, "secrets"))
	if err != nil {
		return nil, err
	}
	s, err := certs.Open(certs.SourceConfig{Files: files, Changed: func(m certs.Material) error {
		return envoy.WriteSecret(dir, m.Cert, m.Key)
	}})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_TLS_CERT, SLUICE_TLS_KEY: %w", err)
	}
	cfg.TLS, cfg.Bootstrap.Secrets = s.Server(), dir
	cfg.Bootstrap.HTTP3 = e.get("SLUICE_HTTP3") == "1"
	return []*certs.Source{s}, nil
}

// clientFiles are empty when edges speak plain text.
func (e environment) clientFiles() (certs.Files, error) {
	f := certs.Files{Cert: e.get("SLUICE_TLS_CERT"), Key: e.get("SLUICE_TLS_KEY")}
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return certs.Files{}, errors.New("SLUICE_TLS_CERT and SLUICE_TLS_KEY go together: one of them is not set")
	case f.Cert == "" && e.get("SLUICE_HTTP3") == "1":
		return certs.Files{}, errors.New("SLUICE_HTTP3 needs SLUICE_TLS_CERT and SLUICE_TLS_KEY: HTTP/3 is always encrypted")
	}
	return f, nil
}

// scheme is that of the addresses of the gateway and the runtime.
func (e environment) scheme() string {
	if e.get("SLUICE_TLS_CERT") != "" {
		return "https"
	}
	return "http"
}

// gatewayTLS is whom services of ours believe to be the gateway: who shows the
// very certificate in SLUICE_TLS_CERT, else whom the system trusts in that name.
// nil without such a file: the system alone decides.
func (e environment) gatewayTLS() *tls.Config {
	file := e.get("SLUICE_TLS_CERT")
	if file == "" {
		return nil
	}
	name, _, _ := net.SplitHostPort(hostPort(e.gatewayURL())) // one that is none fits no certificate
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			if text, err := os.ReadFile(file); err == nil {
				if block, _ := pem.Decode(text); block != nil && bytes.Equal(block.Bytes, state.PeerCertificates[0].Raw) {
					return nil
				}
			}
			chain := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				chain.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Intermediates: chain})
			return errors.Join(err, state.PeerCertificates[0].VerifyHostname(name))
		},
	}
}

// sameCertificate lets a probe of this machine's own edge through: the edge
// must show the certificate in the files, whoever signed it and for whatever name.
func sameCertificate(f certs.Files) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection compares the certificate itself
		VerifyConnection: func(state tls.ConnectionState) error {
			own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
			if err == nil && !state.PeerCertificates[0].Equal(own.Leaf) {
				err = errors.New("the edge shows another certificate")
			}
			return err
		},
	}
}
