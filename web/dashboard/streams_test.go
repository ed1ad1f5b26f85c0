package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/schedules/product"
)

// streams has a media product answer: every account has a stream that is live.
func (b *bundle) streams(t testing.TB) *httptest.Server {
	t.Helper()
	secret := []byte("a secret of 32 bytes and no more")
	verify := identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}
	view := func(account, id, status, policy string) string {
		return fmt.Sprintf(`{"id":%q,"title":"of <%s>","status":%q,"protocol":"rtmp","playback_policy":%q,"playback":{"hls_url":"https://gw.example/play/play_%s/index.m3u8"},"created_at":"2026-11-21T12:00:00Z"}`,
			id, account, status, policy, id)
	}
	media := httptest.NewServer(verify.Require(httpapi.Adapter{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := identity.From(r.Context())
		switch r.URL.Path {
		case "/v1/streams":
			_, _ = fmt.Fprintf(w, `{"data":[%s],"pagination":{"total":1}}`, view(c.Account, "strm_1", "live", "public"))
		case "/v1/streams/strm_1":
			_, _ = fmt.Fprint(w, view(c.Account, "strm_1", "live", "public"))
		case "/v1/streams/strm_2":
			_, _ = fmt.Fprint(w, view(c.Account, "strm_2", "live", "signed"))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"error":{"code":"not_found","message":"There is no such stream."}}`)
		}
	})))
	t.Cleanup(media.Close)
	b.Media = product.Client{BaseURL: media.URL, Secret: secret}
	return media
}

// The media product is asked in the name of the account that was chosen, and a stream that
// is live is shown in a frame of the gateway alone.
func TestStreams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	media := b.streams(t)
	b.serve()
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	u, err := accounts.Store{DB: b.db}.UserByEmail(t.Context(), "o@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if got := owner.get(Root + "/streams"); got.Code != 200 || !strings.Contains(got.body, "of &lt;"+u.Account+"&gt;") {
		t.Fatal(got.Code, got.body)
	}
	if got := b.operator(t).get(Root + "/streams?account=" + u.Account); !strings.Contains(got.body, "of &lt;"+u.Account+"&gt;") {
		t.Error(got.body)
	}
	live := owner.get(Root + "/streams/strm_1")
	if !strings.Contains(live.body, `src="https://gw.example/play/play_strm_1/player?autoplay=true&amp;muted=true"`) || !strings.Contains(live.Header().Get("Content-Security-Policy"), "; frame-src https://gw.example;") {
		t.Error(live.Header(), live.body)
	}
	signed := owner.get(Root + "/streams/strm_2")
	if strings.Contains(signed.body, "<iframe") || strings.Contains(signed.Header().Get("Content-Security-Policy"), "frame-src") || !strings.Contains(signed.body, "viewers need a token") {
		t.Error(signed.Header(), signed.body)
	}
	if got := owner.get(Root + "/streams/strm_3"); got.Code != 404 {
		t.Error(got.Code, got.body)
	}
	media.Close()
	if got := owner.get(Root + "/streams"); got.Code != 502 {
		t.Error(got.Code, got.body)
	}
	b.Alone = true
	b.serve()
	owner.handler = b.handler
	if got := owner.get(Root + "/streams"); got.Code != 404 || strings.Contains(owner.get(Root).body, "Streams") {
		t.Error(got.Code, got.body)
	}
}

// No address of a product can widen what a page may show.
func TestPlayersAreOfOneOrigin(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://gw.example/play/play_1/index.m3u8":         "https://gw.example",
		"http://127.0.0.1:8080/play/play_1/index.m3u8":      "http://127.0.0.1:8080",
		"javascript:alert(1)//index.m3u8":                   "",
		"https://gw.example;script-src/*/play_1/index.m3u8": "",
		"https://a b/play_1/index.m3u8":                     "",
		"https://gw.example/play/play_1/other":              "",
		"/play/play_1/index.m3u8":                           "",
	} {
		if _, got := playerOf(product.Stream{PlaybackPolicy: "public", Playback: product.Playback{HLS: address}}); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}
