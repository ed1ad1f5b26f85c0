package app

import (
	"context"

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
	files, err := p.clientFiles()
	if err != nil || files == (certs.Files{}) || files.Cert == selfSigned {
		return m, err
	}
	source, err := certs.Open(certs.SourceConfig{Files: files})
	if err != nil {
		return m, err
	}
	go source.Run(ctx)
	m.Certificate = source.Server().GetCertificate
	return m, nil
}
