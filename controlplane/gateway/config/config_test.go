package config

import (
	"testing"
)

func defaults(t testing.TB) Document {
	t.Helper()
	d, err := Default()
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
