package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// withCertificates is the default document with certificates.
func withCertificates(t *testing.T, text string) (Document, []string) {
	t.Helper()
	d, _, err := ParseYAML([]byte("include: [builtin]\nproducts: []\nroutes: []\ncertificates:\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	d, faults := d.Expand(ProfileGateway)
	var fields []string
	for _, f := range append(faults, d.Faults()...) {
		fields = append(fields, f.Field)
	}
	slices.Sort(fields)
	return d, fields
}

// What a short entry leaves out is said in what is stored.
func TestCertificatesAreCompleted(t *testing.T) {
	t.Parallel()
	d, faults := withCertificates(t, "- {hosts: ['*.example.com', example.com], acme: {challenge: dns-01}}\n- {name: shop, hosts: [shop.example.com], acme: {}}\n")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if c := d.Certificates[0]; c.Name != "wildcard.example.com" || *c.ACME != (ACME{DNS01, LetsEncrypt, ""}) {
		t.Errorf("%+v", c)
	}
	if c := d.Certificates[1]; c.Name != "shop" || c.ACME.Challenge != HTTP01 {
		t.Errorf("%+v", c)
	}
	if d.AnswersALPN() {
		t.Error("it answers challenges that nobody asks for")
	}
	other, _ := withCertificates(t, "- {hosts: [example.com], acme: {challenge: tls-alpn-01}}\n")
	if !other.AnswersALPN() {
		t.Error("it does not answer tls-alpn-01")
	}
	var paths []string
	for _, c := range Diff(other, d) {
		paths = append(paths, c.Kind+" "+c.Path)
	}
	if want := []string{"removed certificates.example.com", "added certificates.shop", "added certificates.wildcard.example.com"}; !slices.Equal(paths, want) {
		t.Errorf("%v", paths)
	}
}

func TestFaultsOfCertificates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"- {hosts: [], acme: {}}\n":                                                                 "certificates[0].hosts certificates[0].name",
		"- {hosts: [a.example.com]}\n":                                                              "certificates[0].acme",
		"- {hosts: [localhost], acme: {}}\n":                                                        "certificates[0].hosts[0]",
		"- {hosts: [A.example.com], acme: {}}\n":                                                    "certificates[0].hosts[0] certificates[0].name",
		"- {hosts: ['a.*.com'], acme: {}}\n":                                                        "certificates[0].hosts[0]",
		"- {hosts: ['*.a.com'], acme: {}}\n":                                                        "certificates[0].acme.challenge",
		"- {hosts: [a.com], acme: {email: x}}\n":                                                    "certificates[0].acme.email",
		"- {hosts: [a.com, a.com], acme: {}}\n":                                                     "certificates[0].hosts[1]",
		"- {hosts: [a.com], acme: {challenge: x}}\n":                                                "certificates[0].acme.challenge",
		"- {hosts: [a.com], acme: {directory: 'http://a.com'}}\n":                                   "certificates[0].acme.directory",
		"- {hosts: [a.com], acme: {}}\n- {name: a.com, hosts: [b.com], acme: {}}\n":                 "certificates[1].name",
		"- {hosts: [a.com], acme: {}}\n- {name: b, hosts: [b.com, a.com], acme: {}}\n":              "certificates[1].hosts[1]",
		"- {name: long, hosts: [" + strings.Repeat("x", 64) + ".com], acme: {}}\n":                  "certificates[0].hosts[0]",
		fmt.Sprintf("- {name: n, hosts: [%s], acme: {}}\n", strings.Repeat("a.com, ", 101)+"b.com"): "certificates[0].hosts",
	} {
		if _, faults := withCertificates(t, text); strings.Join(faults, " ") != want {
			t.Errorf("%.60s: %v, want %s", text, faults, want)
		}
	}
}
