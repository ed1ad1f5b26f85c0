package envoy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFilesThatWereChangedSinceTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	e := &Edge{cfg: EdgeConfig{Dir: dir, Binary: put("envoy", "one")}}
	put("wasm/edge.wasm", "one")
	put("wasm/keysync.wasm", "one")
	if got := e.Outdated(); got != nil {
		t.Errorf("nothing runs: %q", got)
	}
	began := e.cfg.stamps()
	e.started.Store(&began)
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, nil},
		{func() { put("wasm/edge.inputs", "another") }, nil},
		{func() { put("wasm/edge.wasm", "another") }, []string{"edge.wasm"}},
		{func() { put("envoy", "another") }, []string{"edge.wasm", "envoy"}},
		{func() { put("wasm/new.wasm", "one") }, []string{"edge.wasm", "envoy", "new.wasm"}},
		{func() { now := e.cfg.stamps(); e.started.Store(&now) }, nil},
	} {
		if c.change(); !slices.Equal(e.Outdated(), c.want) {
			t.Errorf("%q, want %q", e.Outdated(), c.want)
		}
	}
}
