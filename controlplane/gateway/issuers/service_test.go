package issuers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

const (
	own   = "https://gw.example"
	other = "https://id.example"
)

// bundle is a service with a database, a clock, and an issuer that can be made
// to answer what a test wants.
type bundle struct {
	*Service
	pool   *pgxpool.Pool
	now    time.Time
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int32
	uri    string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{pool: pgtest.Pool(t), now: time.Unix(1_800_000_000, 0)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		(*b.answer.Load())(w, r)
	}))
	t.Cleanup(server.Close)
	b.uri = server.URL + "/keys"
	keyring := sessions.New(sessions.Config{DB: b.pool, Issuer: own, Audience: own}).Keyring
	b.Service = New(Config{DB: b.pool, Own: own, Keys: keyring.Public, Now: func() time.Time { return b.now },
		Client: outbound.New(outbound.Config{MaxBody: MaxBody, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})})
	return b
}

// trust puts a configuration with these issuers in force.
func (b *bundle) trust(t *testing.T, list ...config.Issuer) {
	t.Helper()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	d.Issuers = list
	if _, err := (config.Store{DB: b.pool}).Put(t.Context(), d, "test", "", config.Any); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) says(status int, body []byte) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	b.answer.Store(&h)
}

func (b *bundle) sync(t *testing.T) {
	t.Helper()
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// atEdges reports whether edges are told of a key.
func (b *bundle) atEdges(t *testing.T, issuer, kid string) bool {
	t.Helper()
	record := func(tag keytable.Tag) (keytable.Record, bool) {
		var raw []byte
		err := b.pool.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1 AND record IS NOT NULL`, tag[:]).Scan(&raw)
		if err != nil && err != pgx.ErrNoRows { //nolint:errorlint // pgx returns it as it is
			t.Fatal(err)
		}
		return keytable.Decode(raw)
	}
	_, found, whole := keytable.Join(keytable.TagOfIssuerKey(issuer, kid), record)
	if found != whole {
		t.Fatalf("edges are told a part of key %s", kid)
	}
	return whole
}

func issuer(uri string) config.Issuer {
	return config.Issuer{Issuer: other, Audience: "sluice", JWKSURI: uri, Account: "acct_0000000000007"}
}

func TestOwnKeysReachEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t)
	b.sync(t)
	first, err := b.config.Keys(t.Context())
	if err != nil || len(first.Keys) != 1 || !b.atEdges(t, own, first.Keys[0].ID) {
		t.Fatal(first, err)
	}
	ring := sessions.New(sessions.Config{DB: b.pool, Issuer: own, Audience: own}).Keyring
	if added, err := ring.Rotate(t.Context(), 0, time.Hour); err != nil || !added {
		t.Fatal(err)
	}
	b.config.Keys = ring.Public
	b.sync(t)
	both, err := ring.Public(t.Context())
	if err != nil || len(both.Keys) != 2 || !b.atEdges(t, own, both.Keys[0].ID) || !b.atEdges(t, own, both.Keys[1].ID) {
		t.Fatalf("after a rotation old tokens and new ones must pass: %+v %v", both, err)
	}
}

func TestKeysOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t, issuer(b.uri))
	b.says(200, set(t, ec(t, "one"), ec(t, "two")))
	b.sync(t)
	if !b.atEdges(t, other, "one") || !b.atEdges(t, other, "two") || b.atEdges(t, other, "three") {
		t.Fatal("the first set")
	}
	b.says(200, set(t, ec(t, "two"), rsaJWK("RS256", rsaKey().N, 65537)))
	b.sync(t)
	if b.atEdges(t, other, "rRS256") || b.asked.Load() != 1 {
		t.Fatal("it is read again before its time")
	}
	b.now = b.now.Add(time.Minute)
	b.sync(t)
	if b.atEdges(t, other, "one") || !b.atEdges(t, other, "two") || !b.atEdges(t, other, "rRS256") {
		t.Fatal("the second set")
	}
	b.trust(t)
	b.sync(t)
	if b.atEdges(t, other, "two") || b.atEdges(t, other, "rRS256") {
		t.Fatal("an issuer that is trusted no more")
	}
}

func TestLastGoodKeysStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t, issuer(b.uri))
	b.says(200, set(t, ec(t, "one")))
	b.sync(t)
	redirect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) })
	failures := map[string]func(){
		"an error":       func() { b.says(500, nil) },
		"not found":      func() { b.says(404, set(t, ec(t, "evil"))) },
		"no set":         func() { b.says(200, []byte(`{}`)) },
		"null":           func() { b.says(200, []byte(`{"keys":null}`)) },
		"another page":   func() { b.says(200, []byte("<html>")) },
		"a large answer": func() { b.says(200, []byte(strings.Repeat(" ", MaxBody)+string(set(t, ec(t, "evil"))))) },
		"a redirect":     func() { b.answer.Store(&redirect) },
	}
	for what, fail := range failures {
		fail()
		b.now = b.now.Add(time.Hour)
		before := b.asked.Load()
		b.sync(t)
		if !b.atEdges(t, other, "one") || b.atEdges(t, other, "evil") || b.asked.Load() != before+1 {
			t.Errorf("%s", what)
		}
	}
	b.says(200, set(t, ec(t, "two")))
	b.now = b.now.Add(10 * time.Second)
	b.sync(t)
	if b.atEdges(t, other, "one") || !b.atEdges(t, other, "two") {
		t.Error("after a failure it is read again soon")
	}
}

// A set without a key may be a slip, but not for long.
func TestKeysEndWithAnEmptySet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t, issuer(b.uri))
	for _, empty := range []string{`{"keys":[]}`, `{"keys":[{"kty":"oct","kid":"one","k":"AA"}]}`} {
		there := func(want bool, what string) {
			t.Helper()
			b.now = b.now.Add(5 * time.Minute)
			b.sync(t)
			if b.atEdges(t, other, "one") != want {
				t.Errorf("%s, %s: %v", empty, what, !want)
			}
		}
		b.says(200, set(t, ec(t, "one")))
		there(true, "a key")
		b.says(200, []byte(empty))
		there(true, "empty")
		there(true, "empty for five minutes")
		b.says(200, set(t, ec(t, "one")))
		there(true, "a key again")
		b.says(200, []byte(empty))
		there(true, "empty again")
		b.says(500, nil)
		there(true, "away meanwhile")
		b.says(200, []byte(empty))
		there(false, "empty for ten minutes")
		there(false, "and on")
	}
}

// Who is between could put their own keys into what comes in plain text: it is read
// from networks that the operator names, and never from elsewhere.
func TestKeysAreNotReadInPlainText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Client = outbound.New(outbound.Config{MaxBody: MaxBody, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
	b.trust(t, issuer(b.uri))
	b.says(200, set(t, ec(t, "one")))
	b.sync(t)
	if b.asked.Load() != 0 || b.atEdges(t, other, "one") {
		t.Errorf("asked %d times", b.asked.Load())
	}
}

// An issuer that hangs, or does not exist, holds nobody else up.
func TestIssuerThatIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	away := config.Issuer{Issuer: "https://away.example", Audience: "sluice", JWKSURI: "http://192.0.2.1/keys", Account: "acct_0000000000007"}
	b.trust(t, away, issuer(b.uri))
	b.says(200, set(t, ec(t, "one")))
	b.sync(t)
	if !b.atEdges(t, other, "one") {
		t.Fatal("the other issuer's key")
	}
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t, issuer(b.uri))
	b.says(200, set(t, ec(t, "one")))
	b.sync(t)
	head := func() (n int64) {
		if err := b.pool.QueryRow(t.Context(), `SELECT head FROM edge_feed`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := head()
	b.now = b.now.Add(time.Hour)
	b.sync(t)
	if head() != before {
		t.Errorf("%d records were sent again", head()-before)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.trust(t, issuer(b.uri))
	asked := make(chan struct{}, 1)
	body := set(t, ec(t, "one"))
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body)
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	b.answer.Store(&h)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { b.Run(ctx); close(ended) }()
	<-asked
	cancel()
	<-ended
}
