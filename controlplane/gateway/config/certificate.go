package config

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
)

// Certificate is one that is asked for by ACME, which edges show clients that ask for
// one of its hosts (SNI). Its key is never in the document, and neither are
// certificates that operators upload: see package certificates.
type Certificate struct {
	Name string `json:"name,omitempty"` // absent: the first host, with wildcard in place of *
	// Hosts are names, or *.example.com, that the certificate is for.
	Hosts []string `json:"hosts"`
	// ACME has an authority issue it, and renew it in time.
	ACME *ACME `json:"acme"`
}

// ACME says how a certificate is asked for (RFC 8555).
type ACME struct {
	// Challenge is how control of the hosts is proved: http-01, at SLUICE_PLAIN_ADDR of
	// the edges; tls-alpn-01, at their gateway; dns-01, by SLUICE_ACME_DNS_HOOK. Empty:
	// http-01. A wildcard needs dns-01.
	Challenge string `json:"challenge,omitempty"`
	// Directory is the authority's address. Empty: that of Let's Encrypt.
	Directory string `json:"directory,omitempty"`
	Email     string `json:"email,omitempty"` // whom the authority may write to
}

// The ways to prove control of a name.
const (
	HTTP01    = "http-01"
	TLSALPN01 = "tls-alpn-01"
	DNS01     = "dns-01"
)

// LetsEncrypt is the directory of ACME when a document names none.
const LetsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// Bounds of a document's certificates: every edge holds all.
const (
	maxCertificates     = 2000
	maxCertificateHosts = 100 // as authorities have it
)

// complete gives a certificate its name, and says how it is asked for.
func (c Certificate) complete() Certificate {
	if c.Name == "" && len(c.Hosts) > 0 {
		c.Name = strings.Replace(c.Hosts[0], "*", "wildcard", 1)
	}
	if c.ACME != nil {
		c.ACME = &ACME{cmp.Or(c.ACME.Challenge, HTTP01), cmp.Or(c.ACME.Directory, LetsEncrypt), c.ACME.Email}
	}
	return c
}

// answersALPN reports whether c is asked for by tls-alpn-01.
func (c Certificate) answersALPN() bool { return c.ACME != nil && c.ACME.Challenge == TLSALPN01 }

// AnswersALPN reports whether edges must answer challenges of tls-alpn-01.
func (d Document) AnswersALPN() bool {
	return slices.ContainsFunc(d.Certificates, Certificate.answersALPN)
}

// certificates checks each, and that no host has two. It takes time linear in list.
func (v *validator) certificates(list []Certificate) {
	if !v.atMost("certificates", len(list), maxCertificates) {
		return
	}
	names, hosts := map[string]bool{}, map[string]bool{}
	for i, c := range list {
		f := fmt.Sprintf("certificates[%d]", i)
		v.name(f+".name", c.Name, names)
		if len(c.Hosts) == 0 {
			v.add(f+".hosts", "is empty", "at least one name, such as api.example.com or *.example.com")
		}
		for j, h := range v.within(f+".hosts", c.Hosts, maxCertificateHosts) {
			at := fmt.Sprintf("%s.hosts[%d]", f, j)
			switch {
			case !ValidHost(h):
				v.add(at, "is not a host", "a name such as api.example.com or *.example.com, in lower case")
			case hosts[h]:
				v.add(at, "has a certificate already", "each host once, in all certificates")
			}
			hosts[h] = true
		}
		if c.ACME == nil {
			v.add(f+".acme", "is missing", "acme: {}; an uploaded certificate does not stand in the document: `sluice certificates add`")
			continue
		}
		v.acme(f+".acme", *c.ACME, c.Hosts)
	}
}

func (v *validator) acme(f string, a ACME, hosts []string) {
	v.oneOf(f+".challenge", a.Challenge, HTTP01, TLSALPN01, DNS01)
	wildcard := slices.ContainsFunc(hosts, func(h string) bool { return strings.HasPrefix(h, "*.") })
	if wildcard && a.Challenge != DNS01 {
		v.add(f+".challenge", "cannot prove control of a wildcard", DNS01)
	}
	u, err := url.Parse(a.Directory)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(a.Directory) > 2048 {
		v.add(f+".directory", "is not an address", "https://…, or nothing for Let's Encrypt")
	}
	if a.Email != "" {
		if at, err := mail.ParseAddress(a.Email); err != nil || at.Address != a.Email || len(a.Email) > 254 {
			v.add(f+".email", "is not an address", "name@example.com")
		}
	}
}

// ValidHost reports whether s can stand in a certificate: a name of at least two
// labels in lower case, the first of which may be *. It takes time linear in s.
func ValidHost(s string) bool {
	labels := strings.Split(strings.TrimPrefix(s, "*."), ".")
	if len(s) > 253 || len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if len(l) == 0 || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
		}) {
			return false
		}
	}
	return true
}
