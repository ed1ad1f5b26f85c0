package main

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"
)

// The short form: clients go gently, while a few things go wrong at once. `make
// chaos` is the long form.
func TestPlatformUnderFire(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := config{seed: 12, length: 25 * time.Second, disk: os.Geteuid() == 0, slow: true, out: &out}
	if err := run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
}

func TestARunSaysWhatItNeeds(t *testing.T) {
	t.Setenv("SLUICE_BIN", "")
	if err := run(t.Context(), config{out: io.Discard}); err == nil {
		t.Error("it runs without a binary")
	}
}
