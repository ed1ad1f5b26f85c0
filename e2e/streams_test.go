package e2e

import (
	"net/http"
	"strings"
	"testing"
)

type stream struct {
	ID, Title, Protocol, Status string
	Recording                   struct{ Enabled bool }
	Ingest                      struct{ RTMP struct{ URL string } }
}

// newKey makes an API key with the seeded account's session, waits until the edge
// knows it, and returns its text and id.
func (s *stack) newKey(t testing.TB, scopes ...string) (text, id string) {
	t.Helper()
	text, id = s.makeKey(t, scopes...)
	s.known(t, text)
	return text, id
}

// makeKey is newKey without the wait.
func (s *stack) makeKey(t testing.TB, scopes ...string) (text, id string) {
	t.Helper()
	r := call(t, http.MethodPost, s.url("/v1/auth/keys"), s.dev["SLUICE_SESSION_TOKEN"], map[string]any{"name": t.Name(), "scopes": scopes})
	wantStatus(t, r, http.StatusCreated)
	k := into[struct{ ID, Key string }](t, r)
	return k.Key, k.ID
}

// url is an address at the gateway.
func (s *stack) url(path string) string { return s.dev["SLUICE_GATEWAY_URL"] + path }

func (s *stack) createStream(t testing.TB, key, title string) stream {
	t.Helper()
	r := call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]any{"title": title, "protocol": "rtmp", "recording": map[string]any{"enabled": true}})
	wantStatus(t, r, http.StatusCreated)
	wantHeaders(t, r)
	return into[stream](t, r)
}

// The real input: create a stream, list it, fetch it, change it, delete it.
func TestLifeOfAStream(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	made := s.createStream(t, key, "Morning show")
	if made.ID == "" || made.Title != "Morning show" || made.Protocol != "rtmp" || !made.Recording.Enabled || !strings.HasPrefix(made.Ingest.RTMP.URL, "rtmp") {
		t.Fatalf("%+v", made)
	}
	one := s.url("/v1/streams/" + made.ID)

	r := call(t, http.MethodGet, one, key, nil)
	wantStatus(t, r, http.StatusOK)
	if got := into[stream](t, r); got.ID != made.ID || got.Title != made.Title {
		t.Fatalf("%+v, want %+v", got, made)
	}
	r = call(t, http.MethodGet, s.url("/v1/streams?limit=100"), key, nil)
	wantStatus(t, r, http.StatusOK)
	if !listed(into[struct{ Data []stream }](t, r).Data, made.ID) {
		t.Fatalf("the list lacks %s: %s", made.ID, r.body)
	}
	r = call(t, http.MethodPatch, one, key, map[string]any{"title": "Evening show"})
	wantStatus(t, r, http.StatusOK)
	if got := into[stream](t, r); got.Title != "Evening show" || got.Protocol != "rtmp" {
		t.Fatalf("%+v", got)
	}
	wantStatus(t, call(t, http.MethodDelete, one, key, nil), http.StatusNoContent)
	wantError(t, call(t, http.MethodGet, one, key, nil), 404, "not_found")
}

func listed(list []stream, id string) bool {
	for _, s := range list {
		if s.ID == id {
			return true
		}
	}
	return false
}

func TestBadStreamNamesEveryField(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	r := call(t, http.MethodPost, s.url("/v1/streams"), s.dev["SLUICE_API_KEY"], map[string]any{"title": 7, "protocol": "smoke", "what": 1})
	wantError(t, r, 400, "invalid_request")
	fields := map[string]bool{}
	for _, d := range into[envelope](t, r).Error.Details {
		fields[d.Field] = true
	}
	if !fields["title"] || !fields["what"] {
		t.Fatal(r.body)
	}
}
