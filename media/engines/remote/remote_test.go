package remote

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{"https://h": true, "http://10.0.0.1:8000/v1/": true, "https://u:p@h/v1": false, "ftp://h": false, "https://h?k=1": false, "h": false, "https://": false} {
		a, err := New(address, "k", "m")
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", address, err)
		}
		if ok && !strings.HasSuffix(a.base, "/v1") {
			t.Errorf("%s: %s", address, a.base)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		code   decision.Code
		gone   bool
		says   string
	}{
		"done":            {200, `{"text": "hello"}`, "", false, ""},
		"not JSON":        {200, `hello`, decision.BadGateway, false, "cannot be read"},
		"too long":        {200, `{"text": "` + strings.Repeat("x", 2000) + `"}`, decision.BadGateway, false, "cannot be read"},
		"wrong":           {400, `{"error": {"message": "no such voice"}}`, decision.InvalidRequest, false, "no such voice"},
		"wrong, silently": {422, `<html>`, decision.InvalidRequest, false, "no reason"},
		"busy":            {429, ``, decision.Transcode001, false, "too much"},
		"key":             {401, `{"error": {"message": "bad key sk-1"}}`, decision.BadGateway, false, "answers 401"},
		"broken":          {500, ``, decision.BadGateway, false, "answers 500"},
		"elsewhere":       {307, ``, decision.BadGateway, false, "answers 307"},
		"away":            {503, ``, decision.BadGateway, true, "cannot be reached"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/elsewhere" {
				t.Error("a redirect was followed")
			}
			if r.Header.Get("Authorization") != "Bearer k" || r.URL.Path != "/v1/audio/speech" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %v", r.URL.Path, r.Header)
			}
			w.Header().Set("Location", "/v1/elsewhere")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		a, err := New(server.URL, "k", "m")
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ Text string }
		err = a.PostJSON(t.Context(), "/audio/speech", map[string]string{"input": "x"}, &out, 1000)
		server.Close()
		if apierror.Code(err) != c.code || errors.Is(err, ErrUnreachable) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(apierror.From(err).Message, c.says) || strings.Contains(apierror.From(err).Message, "sk-1")) {
			t.Errorf("%s: %q", name, apierror.From(err).Message)
		}
		if err == nil && out.Text != "hello" {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	a, err := New(server.URL, "", "m")
	if err != nil {
		t.Fatal(err)
	}
	if version, err := a.Check(t.Context()); version != "m" || err != nil {
		t.Errorf("an API without a list of models: %s %v", version, err)
	}
	server.Close()
	if _, err := a.Check(t.Context()); !errors.Is(err, ErrUnreachable) || strings.Contains(apierror.From(err).Message, "127.0.0.1") {
		t.Errorf("closed: %v", err)
	}
}
