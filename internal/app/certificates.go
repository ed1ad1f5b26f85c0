package app

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"sluice.dev/sluice/controlplane/gateway/certificates"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/platform/outbound"
)

// maxIssued bounds an answer of an authority of ACME, in bytes.
const maxIssued = 1 << 20

// namedCertificates are the certificates of names: where they are kept, renewed and
// handed to edges, and what authorities are answered.
type namedCertificates struct {
	store      certificates.Store // joins the transaction of a request that may be repeated
	publisher  certificates.Publisher
	manager    certificates.Manager
	challenges *certificates.Challenges
}

func (c *controlPlane) newCertificates() (*namedCertificates, error) {
	box, err := c.box()
	if err != nil {
		return nil, err
	}
	allow, err := c.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return nil, err
	}
	calls := outbound.Config{Allow: allow, Timeout: 30 * time.Second, MaxBody: maxIssued}
	if file := c.Get("SLUICE_ACME_CA"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("SLUICE_ACME_CA: %w", err)
		}
		calls.RootCAs = x509.NewCertPool()
		if !calls.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("SLUICE_ACME_CA: %s has no PEM certificate", file)
		}
	}
	hook, err := certificates.NewHook(c.Get("SLUICE_ACME_DNS_HOOK"), outbound.New(outbound.Config{Allow: allow}), os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	own := certificates.Store{DB: c.pool, Box: box, Now: c.now}
	return &namedCertificates{
		store:      certificates.Store{DB: c.repeatable, Box: box, Now: c.now},
		publisher:  certificates.Publisher{Store: own, Serve: c.edges.PublishCertificates},
		manager:    certificates.Manager{Store: own, Connect: c.connect, Document: c.newestDocument, Client: &http.Client{Transport: outbound.New(calls)}, Hook: hook, Ready: edgestatus.Store{DB: c.pool}.AllCurrent},
		challenges: certificates.NewChallenges(own),
	}, nil
}
