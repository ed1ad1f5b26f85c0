package app

import (
	"context"
	"fmt"

	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/moq/server"
	"sluice.dev/sluice/platform/certs"
)

const moqAddr = "SLUICE_MOQ_ADDR"

// moqEndpoint says in c where MoQ is spoken.
func (e Environment) moqEndpoint(c *media.Config) {
	if e.Get(moqAddr) == programs.Off {
		return
	}
	c.Endpoints.MoQ = "https://" + e.public(moqAddr) + server.Endpoint
	cert := e.Get("SLUICE_TLS_CERT")
	c.MoQCertified = cert != "" && cert != selfSigned
}

// moq is how the engine's process speaks it: with the certificate of the edges, where
// there is one of an authority, else with one of its own.
func (p *process) moq(ctx context.Context) (m media.MoQ, err error) {
	if p.Get(moqAddr) == programs.Off {
		return m, nil
	}
	m.Addr = p.Get(moqAddr)
	files := certs.Files{Cert: p.Get("SLUICE_TLS_CERT"), Key: p.Get("SLUICE_TLS_KEY")}
	if files.Cert == "" || files.Cert == selfSigned {
		return m, nil
	}
	source, err := certs.Open(certs.SourceConfig{Files: files})
	if err != nil {
		return m, fmt.Errorf("%s speaks MoQ with the certificate in SLUICE_TLS_CERT, SLUICE_TLS_KEY; off: not at all: %w", moqAddr, err)
	}
	go source.Run(ctx)
	m.Certificate = source.Server().GetCertificate
	return m, nil
}
