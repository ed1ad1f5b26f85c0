package e2e

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A text is spoken and a picture is read, at the gateway and through the runtime, with the
// real programs in their sandbox; each asks for its scope, and the registry says who does
// the work.
func TestVoiceAndVisionWork(t *testing.T) {
	t.Parallel()
	s := studio(t)
	sign, err := os.ReadFile("testdata/sign.png")
	if err != nil {
		t.Fatal(err)
	}
	speaks, _ := s.newKey(t, "voice:write")
	sees, _ := s.newKey(t, "vision:write")
	gateway := s.dev["SLUICE_GATEWAY_URL"]
	for _, base := range []string{gateway, s.dev["SLUICE_RUNTIME_URL"]} {
		r := post(t, base+"/v1/voice?format=opus", speaks, "application/octet-stream", strings.NewReader("The stream starts at seven."))
		wantStatus(t, r, http.StatusOK)
		if r.Header.Get("Content-Type") != "audio/ogg" || !strings.HasPrefix(r.body, "OggS") || len(r.body) < 4000 {
			t.Errorf("%s: %d bytes of %s", base, len(r.body), r.Header.Get("Content-Type"))
		}
		r = post(t, base+"/v1/vision?features=text", sees, "application/octet-stream", bytes.NewReader(sign))
		wantStatus(t, r, http.StatusOK)
		seen := into[struct {
			Pictures []struct{ Text struct{ Text string } }
		}](t, r)
		if len(seen.Pictures) != 1 || seen.Pictures[0].Text.Text != "The stream starts at seven\nand everybody is invited." {
			t.Errorf("%s: %s", base, r.body)
		}
	}
	r := post(t, gateway+"/v1/voice", speaks, "application/json", strings.NewReader(`{"text": "Good evening.", "language": "en"}`))
	wantStatus(t, r, http.StatusOK)
	if !strings.HasPrefix(r.body, "RIFF") {
		t.Errorf("%.20q", r.body)
	}
	wantError(t, post(t, gateway+"/v1/voice", sees, "text/plain", strings.NewReader("Good evening.")), 403, "AUTH_002")
	wantError(t, post(t, gateway+"/v1/vision", speaks, "image/png", bytes.NewReader(sign)), 403, "AUTH_002")
	wantError(t, post(t, gateway+"/v1/voice", speaks, "application/json", strings.NewReader(`{"text": ""}`)), 400, "invalid_request")
	wantError(t, post(t, gateway+"/v1/vision", sees, "image/png", strings.NewReader("no picture")), 400, "STORAGE_002")
	voices := call(t, http.MethodGet, gateway+"/v1/voice/voices", speaks, nil)
	wantStatus(t, voices, http.StatusOK)
	if !strings.Contains(voices.body, `"en_US-joe-medium"`) {
		t.Error(voices.body)
	}
	registry := into[struct {
		Products []struct {
			Name, State string
			Engine      struct{ Use, Health, Version string }
		}
	}](t, call(t, http.MethodGet, gateway+"/.well-known/platform-products.json", "", nil))
	found := 0
	for _, p := range registry.Products {
		if p.Name == "voice" || p.Name == "vision" {
			found++
			if p.State != "available" || p.Engine.Use != "builtin" || p.Engine.Health != "ok" || p.Engine.Version == "" {
				t.Errorf("%+v", p)
			}
		}
	}
	if found != 2 {
		t.Errorf("the registry names %d of them", found)
	}
}
