package jobs_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/catalogue"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// delivered makes one real delivery and returns it.
func delivered(t *testing.T, secret string) webhooktest.Received {
	t.Helper()
	b, r := live(t)
	b.Subscribe(r.URL, webhooks.Create{Secret: secret})
	b.Emit(events.Event{StreamID: "strm_1", Data: map[string]any{"title": "Grüße <b>&</b>"}})
	return next(t, r)
}

func TestPublicStandardWebhooksLibraryVerifiesUs(t *testing.T) {
	t.Parallel()
	const prefixed = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	decoding, err := standardwebhooks.NewWebhook(prefixed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := standardwebhooks.NewWebhookRaw([]byte(webhooktest.Secret))
	if err != nil {
		t.Fatal(err)
	}
	for secret, library := range map[string]*standardwebhooks.Webhook{prefixed: decoding, webhooktest.Secret: raw} {
		got := delivered(t, secret)
		if err := library.Verify(got.Body, got.Header); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
		if err := library.Verify(append(got.Body, ' '), got.Header); err == nil {
			t.Errorf("%s: a changed body verifies", secret)
		}
	}
}

// The frames that each language's helper of the documentation is put into:
// they read a request from standard input and print what the helper says.
var frames = map[string]struct {
	file, before, after string
	command             []string
}{
	"go": {"verify.go", `package main

import ("crypto/hmac"; "crypto/sha256"; "encoding/hex"; "encoding/json"; "fmt"; "net/http"; "os"; "strconv"; "time")

`, `
func main() {
	var in struct { Secret, Body string; Headers map[string]string }
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil { panic(err) }
	h := http.Header{}
	for k, v := range in.Headers { h.Set(k, v) }
	fmt.Print(verify(in.Secret, h, []byte(in.Body)))
}
`, []string{"go", "run"}},
	"python": {"verify.py", "import json, sys\n", `
i = json.load(sys.stdin)
print(str(verify(i["Secret"], i["Headers"], i["Body"].encode())).lower(), end="")
`, []string{"python3"}},
	"javascript": {"verify.js", "", `
const i = JSON.parse(require("node:fs").readFileSync(0));
const lower = Object.fromEntries(Object.entries(i.Headers).map(([k, v]) => [k.toLowerCase(), v]));
process.stdout.write(String(verify(i.Secret, lower, Buffer.from(i.Body))));
`, []string{"node"}},
}

func TestVerificationHelpersOfTheDocumentation(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	got := delivered(t, webhooktest.Secret)
	for language, f := range frames {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			block := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n").FindSubmatch(doc)
			if block == nil {
				t.Fatal("the documentation has no such helper")
			}
			path := filepath.Join(t.TempDir(), f.file)
			if err := os.WriteFile(path, []byte(f.before+string(block[1])+f.after), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]struct {
				secret string
				change func(http.Header)
				body   []byte
				want   string
			}{
				"as delivered":   {webhooktest.Secret, nil, got.Body, "true"},
				"another secret": {"another", nil, got.Body, "false"},
				"another body":   {webhooktest.Secret, nil, append(bytes.Clone(got.Body), ' '), "false"},
				"too old":        {webhooktest.Secret, func(h http.Header) { h.Set("X-Service-Timestamp", "1600000000") }, got.Body, "false"},
				"no signature":   {webhooktest.Secret, func(h http.Header) { h.Del("X-Service-Signature") }, got.Body, "false"},
			} {
				h := got.Header.Clone()
				if c.change != nil {
					c.change(h)
				}
				if answer := ask(t, append(f.command, path), c.secret, h, c.body); answer != c.want {
					t.Errorf("%s: %q, want %s", name, answer, c.want)
				}
			}
		})
	}
}

func ask(t *testing.T, command []string, secret string, h http.Header, body []byte) string {
	t.Helper()
	headers := map[string]string{}
	for k := range h {
		headers[k] = h.Get(k)
	}
	in, err := json.Marshal(map[string]any{"Secret": secret, "Headers": headers, "Body": string(body)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", command, err, out)
	}
	return string(out)
}

func TestDocumentationNamesEveryEvent(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range catalogue.All() {
		if !strings.Contains(string(doc), "| `"+e.Name+"` |") {
			t.Errorf("%s is missing", e.Name)
		}
	}
}
