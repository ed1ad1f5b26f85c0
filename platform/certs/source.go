package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"
)

// SourceConfig says which files a Source follows.
type SourceConfig struct {
	Files Files
	// Every is how often the files are read. 0: 2 s. They are compared by their
	// contents, so that it does not matter how they are replaced.
	Every time.Duration
	// Changed is called with what was read first, before Open returns, and then
	// from Run with each change. An error makes Open fail; from Run it is logged
	// and tried again. Nil: nothing is called.
	Changed func(Material) error
	// Log is for changes and for files that cannot be used; nil: slog.Default.
	Log *slog.Logger
}

// Source is the newest material of some files that is of use. Files that become
// unreadable or stop to fit leave the last good ones in force.
type Source struct {
	config  SourceConfig
	current atomic.Pointer[Material]
}

// Open reads the files.
func Open(c SourceConfig) (*Source, error) {
	if c.Every == 0 {
		c.Every = 2 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Changed == nil {
		c.Changed = func(Material) error { return nil }
	}
	s := &Source{config: c}
	m, err := Read(c.Files)
	if err != nil {
		return nil, err
	}
	s.current.Store(&m)
	return s, c.Changed(m)
}

// Run follows the files until ctx ends.
func (s *Source) Run(ctx context.Context) {
	tick := time.NewTicker(s.config.Every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.Refresh()
		if err == nil {
			said = ""
		} else if text := err.Error(); text != said { // once, and not at every tick
			said = text
			s.config.Log.Error("certificates cannot be used; the last good ones stay in force", "error", err)
		}
	}
}

// Refresh reads the files now. Run calls it; it is not for several goroutines at
// once.
func (s *Source) Refresh() error {
	m, err := Read(s.config.Files)
	if err != nil || m.Equal(*s.current.Load()) {
		return err
	}
	if err := s.config.Changed(m); err != nil {
		return err
	}
	s.current.Store(&m)
	s.config.Log.Info("certificates replaced", "file", s.config.Files.Cert)
	return nil
}

// Material returns what is in force.
func (s *Source) Material() Material { return *s.current.Load() }

// Server is the configuration of a server that shows the certificate in force to
// anybody.
func (s *Source) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := s.Material().pair()
		return &pair, err
	}}
}

// Mutual is the configuration of a server whose clients must show a certificate
// of the CA in force. Connections go on when certificates change; new ones meet
// the new.
func (s *Source) Mutual() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m := s.Material()
		pair, err := m.pair()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{pair},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    m.roots(),
			NextProtos:   []string{"h2", "http/1.1"},
			// A session that is resumed would skip a CA that was replaced.
			SessionTicketsDisabled: true,
		}, nil
	}}
}

// Client is the configuration of a client that shows the certificate in force and
// wants one of the CA in force that has the DNS name.
func (s *Source) Client(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: name,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := s.Material().pair()
			return &pair, err
		},
		// The check that this turns off knows one CA for good; VerifyConnection does
		// the same with the one in force.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: s.Material().roots(), Intermediates: between, DNSName: name})
			return err
		},
	}
}
