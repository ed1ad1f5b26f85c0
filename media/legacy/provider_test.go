package legacy

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

func connect(t *testing.T, h http.HandlerFunc) Provider {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Provider{Client: NewClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), BaseURL: s.URL + "/api", Token: "t0ken"}
}

func TestAProviderIsAskedAsDocumented(t *testing.T) {
	t.Parallel()
	p := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" || r.URL.Path != "/api/videos" || r.URL.Query().Get("limit") != "5" || r.URL.Query().Get("cursor") != "a&b" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"videos":[{"id":"1","title":"a\u0000b","duration":1.5,"size":2,"download_url":"https://x/y"}],"next_cursor":"n"}`))
	})
	page, err := p.Videos(t.Context(), "a&b", 5)
	if err != nil || page.NextCursor != "n" || page.Videos[0] != (Video{"1", "ab", 1.5, 2, "https://x/y"}) {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestWhatAProviderAnswersInstead(t *testing.T) {
	t.Parallel()
	status := func(n int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) } }
	cases := map[string]struct {
		answer http.HandlerFunc
		want   decision.Code
	}{
		"no, not with that token": {status(401), decision.InvalidRequest},
		"no, never":               {status(403), decision.InvalidRequest},
		"go elsewhere":            {status(302), decision.BadGateway},
		"nothing here":            {status(404), decision.BadGateway},
		"not now":                 {status(503), decision.BadGateway},
		"a page for people":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, decision.BadGateway},
		"more than anyone asked for": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"videos":[],"x":"` + strings.Repeat("x", maxPage) + `"}`))
		}, decision.BadGateway},
	}
	for name, c := range cases {
		p := connect(t, c.answer)
		if _, err := p.Videos(t.Context(), "", 1); apierror.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := p.Webhooks(t.Context()); apierror.Code(err) != c.want {
			t.Errorf("%s, of webhooks: %v", name, err)
		}
	}
}

// An error says what went wrong, and never with which token.
func TestTheTokenIsInNoError(t *testing.T) {
	t.Parallel()
	p := connect(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	_, refused := p.Videos(t.Context(), "", 1)
	p.BaseURL = "http://127.0.0.1:1"
	_, unreached := p.Videos(t.Context(), "", 1)
	for _, err := range []error{refused, unreached} {
		if err == nil || strings.Contains(err.Error(), "t0ken") {
			t.Error(err)
		}
	}
}

func TestAWalkEndsWithTheLastPageOrTheGreatestNumber(t *testing.T) {
	t.Parallel()
	pages := 0
	p := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		pages++
		_, _ = w.Write([]byte(`{"videos":[],"next_cursor":"again"}`))
	})
	partial, err := walk(t.Context(), p, func([]Video) error { return nil })
	if !partial || err != nil || pages != maxPages {
		t.Errorf("%v after %d pages, %v", partial, pages, err)
	}
}

func TestWhyAnImportFailedIsTold(t *testing.T) {
	t.Parallel()
	if got := message(apierror.Errorf(decision.QuotaUsed, "Full.")); got != "Full." {
		t.Error(got)
	}
	if got := message(&apierror.Error{Code: decision.QuotaUsed}); got != decision.Lookup(decision.QuotaUsed).Message {
		t.Error(got)
	}
	if got := message(http.ErrBodyNotAllowed); strings.Contains(got, "http") {
		t.Errorf("the text of an error of ours is shown: %s", got)
	}
}
