package config

import (
	"testing"

	"sluice.dev/sluice/deploy"
)

func defaults(t testing.TB) Document {
	t.Helper()
	d, _, err := ParseYAML(deploy.Document)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDefaultDocumentIsValidAndCompiles(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Policy(1, "http://gw", ProvisionalNumbers(d)); err != nil {
		t.Fatal(err)
	}
}
