package e2e

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// secrets are those that the tests were given or made, by their text: no log of
// any stack may hold one.
var secrets = struct {
	sync.Mutex
	kinds map[string]string
}{kinds: map[string]string{}}

// shortest is the length of text that nothing but a secret is likely to hold.
const shortest = 16

// keepSecret has every log searched for text.
func keepSecret(kind, text string) {
	if len(text) < shortest {
		return
	}
	secrets.Lock()
	defer secrets.Unlock()
	secrets.kinds[text] = kind
}

// isSecret reports whether a field or variable of this name holds a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "password", "secret", "stream_key"}, func(end string) bool {
		return name == end || strings.HasSuffix(name, "_"+end)
	})
}

// keepAnswer keeps the secrets in the JSON of an answer that made something.
func keepAnswer(body string) {
	var v any
	if json.Unmarshal([]byte(body), &v) == nil {
		keepFields("", v)
	}
}

func keepFields(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, field := range v {
			keepFields(k, field)
		}
	case []any:
		for _, element := range v {
			keepFields(name, element)
		}
	case string:
		if isSecret(name) {
			keepSecret(name, v)
		}
	}
}

// leaks names the logs of a stack that hold a secret, and the kind of it.
func (s *stack) leaks() error {
	found := leaksIn("the output of up", s.Output())
	err := filepath.WalkDir(filepath.Join(s.dir, "logs"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it never started
		}
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = append(found, leaksIn(e.Name(), string(b))...)
		return err
	})
	return errors.Join(append(found, err)...)
}

func leaksIn(log, text string) (found []error) {
	for _, kind := range secretsIn(text) {
		found = append(found, fmt.Errorf("%s holds a secret: %s", log, kind))
	}
	// Each process has a database role of its own, which must do for all that it does,
	// the work in the background too.
	for line := range strings.Lines(text) {
		if strings.Contains(line, "SQLSTATE 42501") || strings.Contains(line, "permission denied for") {
			found = append(found, fmt.Errorf("%s: the database refuses something: %s", log, strings.TrimSpace(line)))
			break
		}
	}
	return found
}

// secretsIn returns the kinds of the secrets that are in text. It reads text once, however
// many secrets there are: the suite has thousands, and logs of a hundred megabytes.
func secretsIn(text string) (kinds []string) {
	secrets.Lock()
	defer secrets.Unlock()
	const odd = 0x9e3779b97f4a7c15
	by := map[uint64][]string{} // by their bytes from 8 to 16, which differ more than those before
	var filter [1 << 13]uint64  // a bit for each hash of these
	for secret := range secrets.kinds {
		v := binary.LittleEndian.Uint64([]byte(secret[shortest-8:]))
		by[v] = append(by[v], secret)
		h := v * odd >> 45
		filter[h/64] |= 1 << (h % 64)
	}
	seen, v := map[string]bool{}, uint64(0)
	for i := range len(text) {
		v = v>>8 | uint64(text[i])<<56
		if h := v * odd >> 45; filter[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for _, secret := range by[v] {
			if begin := i + 1 - shortest; begin >= 0 && !seen[secret] && strings.HasPrefix(text[begin:], secret) {
				seen[secret] = true
				kinds = append(kinds, secrets.kinds[secret])
			}
		}
	}
	return kinds
}

func TestLogsAreSearched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	keepAnswer(`{"id":"search_0123456789abcdef","data":[{"stream_key":"leaked-0123456789abcdef"}]}`)
	keepSecret("of sixteen bytes", "sixteen bytes 16")
	text := "search_0123456789abcdef leaked-0123456789abcdef"
	s := &stack{Process: &harness.Process{}, dir: dir}
	if err := s.leaks(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "logs", "api.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.leaks(); err == nil || err.Error() != "api.log holds a secret: stream_key" {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"sixteen bytes 16": 1, "sixteen bytes 16 leaked-0123456789abcdef sixteen bytes 16": 2, "sixteen bytes 1": 0, "": 0, "ixteen bytes 16": 0} {
		if got := secretsIn(text); len(got) != want {
			t.Errorf("%q holds %q", text, got)
		}
	}
}
