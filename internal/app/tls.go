package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"sluice.dev/sluice/envoy"
	"sluice.dev/sluice/platform/certs"
)

// peerCerts is what the control plane or an edge shows the other; nil without
// SLUICE_XDS_TLS_DIR: plain text, and an edge is whom it says.
func (e Environment) peerCerts(name string) (*certs.Source, error) {
	dir := e.Get("SLUICE_XDS_TLS_DIR")
	if dir == "" {
		return nil, nil
	}
	s, err := certs.Open(certs.SourceConfig{Files: certs.In(dir, name)})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_XDS_TLS_DIR: %w", err)
	}
	return s, nil
}

// clientTLS puts the certificate that clients see, if there is one, where Envoy
// finds it, and into cfg what is to be done with it. The source keeps it current.
func (e Environment) clientTLS(cfg *envoy.EdgeConfig) (*certs.Source, error) {
	files, err := e.clientFiles()
	if err != nil || files == (certs.Files{}) {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(cfg.StateDir, "secrets"))
	if err != nil {
		return nil, err
	}
	if files.Cert == selfSigned {
		if files, err = defaultCertificate(filepath.Join(cfg.StateDir, "default-certificate")); err != nil {
			return nil, err
		}
	}
	s, err := certs.Open(certs.SourceConfig{Files: files, Changed: func(m certs.Material) error {
		return envoy.WriteSecret(dir, m.Cert, m.Key)
	}})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_TLS_CERT, SLUICE_TLS_KEY: %w", err)
	}
	cfg.TLS, cfg.Bootstrap.Secrets = s.Server(), dir
	cfg.Bootstrap.PlainAddr = e.Get("SLUICE_PLAIN_ADDR")
	cfg.Bootstrap.HTTP3 = e.Get("SLUICE_HTTP3") == "1"
	return s, nil
}

// clientFiles are empty when edges speak plain text.
func (e Environment) clientFiles() (certs.Files, error) {
	f := certs.Files{Cert: e.Get("SLUICE_TLS_CERT"), Key: e.Get("SLUICE_TLS_KEY")}
	switch {
	case f.Cert == selfSigned && f.Key == "":
	case f.Cert == "" && e.Get("SLUICE_PLAIN_ADDR") != "":
		return certs.Files{}, errors.New("SLUICE_PLAIN_ADDR needs SLUICE_TLS_CERT, which may be self-signed: without it the gateway itself speaks plain text")
	case (f.Cert == "") != (f.Key == ""):
		return certs.Files{}, errors.New("SLUICE_TLS_CERT and SLUICE_TLS_KEY go together: one of them is not set")
	case f.Cert == "" && e.Get("SLUICE_HTTP3") == "1":
		return certs.Files{}, errors.New("SLUICE_HTTP3 needs SLUICE_TLS_CERT and SLUICE_TLS_KEY: HTTP/3 is always encrypted")
	}
	return f, nil
}

// selfSigned, as SLUICE_TLS_CERT, has an edge make the certificate for names that the
// configuration has none for.
const selfSigned = "self-signed"

// defaultCertificate makes such a certificate, and returns its files.
func defaultCertificate(dir string) (certs.Files, error) {
	if err := certs.Make(certs.MakeConfig{Dir: dir, Hosts: []string{"unknown.invalid"}}); err != nil {
		return certs.Files{}, fmt.Errorf("make a certificate: %w", err)
	}
	return certs.In(dir, certs.Gateway), nil
}

// scheme is that of the addresses of the gateway and the runtime.
func (e Environment) scheme() string {
	if e.Get("SLUICE_TLS_CERT") != "" {
		return "https"
	}
	return "http"
}

// gatewayTLS is whom services of ours believe to be the gateway: who shows the
// very certificate in SLUICE_TLS_CERT, else whom the system trusts in that name.
// nil without such a file: the system alone decides.
func (e Environment) gatewayTLS() *tls.Config {
	file := e.Get("SLUICE_TLS_CERT")
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
	if f.Cert == selfSigned { // which nobody can know beforehand
		return &tls.Config{InsecureSkipVerify: true}
	}
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
