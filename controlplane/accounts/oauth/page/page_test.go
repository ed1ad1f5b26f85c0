package page

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

var views = map[string]View{
	"sign-in": SignIn{Form{"tok", "a=b&c=d"}, "Studio", "ann@example.com", "It is wrong."},
	"consent": Consent{Form{"tok", "a=b&c=d"}, "Studio", "ann@example.com", "Ann", []string{"streams:read"}, []string{"users:write"}, "client.example", "https"},
	"problem": Problem{"No", "It cannot be.", "req-1"},
}

// The policy must let the browser use our style, or people see a bare page.
func TestTheStyleIsTheOneThatThePolicyNames(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	for name, v := range views {
		w := httptest.NewRecorder()
		if err := Write(w, 200, v); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(inline.FindStringSubmatch(w.Body.String())[1]))
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(w.Header().Get("Content-Security-Policy"), want) {
			t.Errorf("%s: %s", name, w.Header().Get("Content-Security-Policy"))
		}
	}
}

func TestFormsMayLeadToTheClientOnly(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]string{"": "form-action 'self'", "https": "form-action 'self' https:", "com.example": "form-action 'self' com.example:"} {
		if got := policy(scheme); !strings.HasSuffix(got, want) {
			t.Errorf("%q: %s", scheme, got)
		}
	}
}

// What a page needs for keyboards, screen readers and phones.
func TestPagesCanBeUsedByAll(t *testing.T) {
	t.Parallel()
	field := regexp.MustCompile(`<input [^>]*>`)
	for name, v := range views {
		w := httptest.NewRecorder()
		if err := Write(w, 200, v); err != nil {
			t.Fatal(err)
		}
		body := w.Body.String()
		for _, part := range []string{`<html lang="en">`, `name="viewport"`, "<title>", "<h1>", "</html>", "prefers-color-scheme: dark"} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s", name, part)
			}
		}
		for _, f := range field.FindAllString(body, -1) {
			if before, _, _ := strings.Cut(body, f); !strings.Contains(f, `type="hidden"`) && strings.Count(before, "<label>") <= strings.Count(before, "</label>") {
				t.Errorf("%s: %s has no label", name, f)
			}
		}
		for _, never := range []string{"<script", "onclick", "style=", "tabindex", "<div role"} {
			if strings.Contains(body, never) {
				t.Errorf("%s: %s", name, never)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{
		"clips:write":     "Create clips",
		"schedules:read":  "View schedules",
		"schedules:write": "Create and change schedules",
		"streams:*":       "Do everything with streams",
		"big_things:sell": "sell big things",
	} {
		if got := Describe(scope); got != want {
			t.Errorf("%s: %q", scope, got)
		}
	}
}
