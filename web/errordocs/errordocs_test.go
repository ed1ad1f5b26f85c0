package errordocs

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
)

func get(path, accept string) *httptest.ResponseRecorder { return getOf(true, path, accept) }

func getOf(all bool, path, accept string) *httptest.ResponseRecorder {
	mux := chi.NewRouter()
	site, err := docsite.New(fstest.MapFS{"quickstart.md": {Data: []byte("# Start")}}, all)
	if err != nil {
		panic(err)
	}
	Pages{Site: site, All: all}.Routes(mux, httpapi.Adapter{})
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// The address in every error's envelope leads to its page.
func TestEveryCodeHasItsPage(t *testing.T) {
	t.Parallel()
	for _, info := range decision.All() {
		w := get(decision.DocsURL("", info.Code), "text/html")
		body := w.Body.String()
		if w.Code != 200 || !strings.Contains(body, string(info.Code)) || !strings.Contains(html.UnescapeString(body), info.Message) {
			t.Errorf("%s: %d %s", info.Code, w.Code, body)
		}
		if strings.Contains(body, "`") {
			t.Errorf("%s: mark-up is left in the page", info.Code)
		}
		if example := html.UnescapeString(body); !strings.Contains(example, fmt.Sprintf("HTTP/1.1 %d ", info.Status)) && info.Status != 0 || !strings.Contains(example, `"`+string(info.Code)+`"`) {
			t.Errorf("%s has no example: %s", info.Code, example)
		}
	}
}

// What a remedy calls the API reference is there to be followed.
func TestTheReferenceIsLinked(t *testing.T) {
	t.Parallel()
	if body := get("/docs/errors/"+string(decision.RouteNotMapped), "text/html").Body.String(); !strings.Contains(body, `against the <a href="/docs/reference">API reference</a>.</p>`) {
		t.Error(body)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for accept, path := range map[string]string{"application/json": "/docs/errors", "text/html": "/docs/errors?format=json", "*/*": "/docs/errors", "": "/docs/errors"} {
		w := get(path, accept)
		var got struct{ Data []entry }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Data) != len(decision.All()) || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept: %s: %d entries, %v", accept, len(got.Data), err)
		}
	}
}

// What examples say beside the code is what the edge says.
func TestExamplesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, want := range map[decision.Code]string{
		decision.AuthRequired: "Authorization: Bearer <API key>", decision.InvalidKey: "slk_ and 52 more characters", decision.RateLimited: "another try in 21 seconds",
		decision.ScopeMissing: "orders:write", decision.AddrRefused: "is 203.0.113.7", decision.TooLarge: "at most 1048576 bytes",
	} {
		if body := html.UnescapeString(get("/docs/errors/"+string(code), "text/html").Body.String()); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in %s", code, want, body)
		}
	}
}

func TestUnknownCodes(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/docs/errors/NOPE_001", "/docs/errors/%3Cscript%3E"} {
		if w := get(path, ""); w.Code != 404 || strings.Contains(w.Body.String(), "<script>") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A gateway without media and payments says nothing of their codes.
func TestCodesOfProducts(t *testing.T) {
	t.Parallel()
	list := getOf(false, "/docs/errors", "text/html").Body.String()
	for _, code := range []decision.Code{decision.Stream001, decision.Transcode002, decision.Storage001, decision.PaymentRequired} {
		if strings.Contains(list, string(code)) || getOf(false, "/docs/errors/"+string(code), "").Code != 404 || getOf(true, "/docs/errors/"+string(code), "").Code != 200 {
			t.Errorf("%s is shown where nothing answers it, or not where something does", code)
		}
	}
	for _, code := range []decision.Code{decision.RateLimited, decision.RouteNotMapped, decision.Unpaid, decision.Webhook001, decision.NotImplemented, decision.Internal} {
		if !strings.Contains(list, string(code)) || getOf(false, "/docs/errors/"+string(code), "").Code != 200 {
			t.Errorf("%s is not shown", code)
		}
	}
}
