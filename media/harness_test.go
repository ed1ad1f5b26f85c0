package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/sandbox"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

func TestMain(m *testing.M) {
	sandbox.Main(media.Confined())
	os.Exit(m.Run())
}

var secret = []byte("the secret that edges sign with.")

// bundle is one product with a database and a clock of its own.
type bundle struct {
	t       *testing.T
	pool    *pgxpool.Pool
	config  media.Config
	handler http.Handler
	now     time.Time
}

func setup(t *testing.T, adjust ...func(*media.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, pool: pgtest.Pool(t), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	if _, err := b.pool.Exec(t.Context(), `CREATE TABLE test_events (n int GENERATED ALWAYS AS IDENTITY, event jsonb)`); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return b.now }
	c := media.Config{
		DB: b.pool, Events: storedEvents{}, Now: clock,
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }, Now: clock},
		Respond:  httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		Plans:    plans.Table{"": {ConcurrentStreams: 2, BitrateKbps: 6000, FileBytes: 4096, StorageBytes: 10_000}},
	}
	for _, f := range adjust {
		f(&c)
	}
	b.config, b.handler = c, media.New(c)
	return b
}

// storedEvents keeps events in a table: what the product's transaction did not
// commit is not there.
type storedEvents struct{}

func (storedEvents) EmitTx(ctx context.Context, tx pgx.Tx, e events.Event) error {
	kind, ok := catalogue.Lookup(e.Type)
	if bad := kind.Check(plain(e.Data)); !ok || len(bad) > 0 {
		return fmt.Errorf("%s is not in the catalogue like this: %v", e.Type, bad)
	}
	_, err := tx.Exec(ctx, `INSERT INTO test_events (event) VALUES ($1)`, e)
	return err
}

// plain is data as a receiver decodes it.
func plain(data map[string]any) (out map[string]any) {
	raw, err := json.Marshal(data)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func (b *bundle) events() []events.Event {
	b.t.Helper()
	rows, _ := b.pool.Query(b.t.Context(), `SELECT event FROM test_events ORDER BY n`)
	out, err := pgx.CollectRows(rows, pgx.RowTo[events.Event])
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bundle) eventTypes() string {
	var types []string
	for _, e := range b.events() {
		types = append(types, e.Type)
	}
	return strings.Join(types, " ")
}

// answer is one response.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	raw    []byte
}

// as sends a request as caller and holds the answer against the OpenAPI. A
// string body is sent as it is, nil none, anything else as JSON. Extra headers
// are name, value, name, value.
func (b *bundle) as(caller identityheader.Caller, method, path string, body any, headers ...string) answer {
	b.t.Helper()
	r := httptest.NewRequest(method, path, bodyOf(b.t, body))
	r.Header.Set(identityheader.Header, identityheader.Sign(secret, caller, b.now.Unix()))
	r.Header.Set(httpapi.RequestIDHeader, "req-test")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	a := answer{t: b.t, status: w.Code, header: w.Header(), raw: w.Body.Bytes()}
	checkAnswer(b.t, r, a)
	return a
}

// request is one of the usual account with a body that is read as it comes, and
// where its answer goes.
func (b *bundle) request(method, path string, body io.Reader) (*http.Request, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(method, path, body)
	r.Header.Set(identityheader.Header, identityheader.Sign(secret, identityheader.Caller{Account: "acct_1", Key: "key_1"}, b.now.Unix()))
	return r, httptest.NewRecorder()
}

// do is as the usual account.
func (b *bundle) do(method, path string, body any, headers ...string) answer {
	b.t.Helper()
	return b.as(identityheader.Caller{Account: "acct_1", Key: "key_1"}, method, path, body, headers...)
}

func bodyOf(t *testing.T, body any) io.Reader {
	switch v := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(v)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(raw)
}

// want fails the test unless the status is the given one.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.raw)
	}
	return a
}

// wantError fails unless the answer is an envelope with this status and code,
// and with exactly these fields in its details, in any order.
func (a answer) wantError(status int, code string, fields ...string) {
	a.t.Helper()
	var e struct {
		Error struct {
			Code    string
			Details []struct{ Field string }
		}
	}
	a.want(status).into(&e)
	left := map[string]bool{}
	for _, f := range fields {
		left[f] = true
	}
	ok := e.Error.Code == code && len(e.Error.Details) == len(fields)
	for _, d := range e.Error.Details {
		ok = ok && left[d.Field]
	}
	if !ok {
		a.t.Fatalf("want %s with %v: %s", code, fields, a.raw)
	}
}

func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.raw, v); err != nil {
		a.t.Fatalf("%v: %s", err, a.raw)
	}
}

// get reads one value by its dotted path; numbers are float64.
func (a answer) get(path string) any {
	a.t.Helper()
	var v any
	a.into(&v)
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string {
	a.t.Helper()
	s, ok := a.get(path).(string)
	if !ok {
		a.t.Fatalf("%s is no string: %s", path, a.raw)
	}
	return s
}

var router = sync.OnceValues(func() (routers.Router, error) {
	for _, kind := range []string{"application/vnd.apple.mpegurl", "text/html", "text/vtt", "application/x-subrip", "application/sdp", "image/jpeg", "image/png", "video/mp2t", "video/x-matroska", "audio/wav", "audio/mpeg", "audio/ogg"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
	doc, err := openapi3.NewLoader().LoadFromData(media.OpenAPI)
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc) // which validates doc
})

// checkAnswer holds an answer of a documented route against the document.
// Routes of the platform's own services, under /internal, are not in it.
func checkAnswer(t *testing.T, r *http.Request, a answer) {
	t.Helper()
	find, err := router()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := find.FindRoute(r)
	if err != nil {
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && !strings.HasPrefix(r.URL.Path, "/internal/") {
			t.Fatalf("%s %s is not documented but answers %d", r.Method, r.URL.Path, a.status)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.status, Header: a.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	if err := openapi3filter.ValidateResponse(t.Context(), out.SetBodyBytes(a.raw)); err != nil {
		t.Fatalf("%s %s answers %d, not as documented: %v", r.Method, r.URL.Path, a.status, err)
	}
}
