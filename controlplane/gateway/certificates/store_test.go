package certificates

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/jackc/pgx/v5"
	"github.com/mholt/acmez/v3/acme"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/secretbox"
)

func newStore(t *testing.T) Store {
	t.Helper()
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	return Store{DB: pgtest.Pool(t), Box: box}
}

func asked(name string, hosts ...string) config.Certificate {
	return config.Certificate{Name: name, Hosts: hosts, ACME: &config.ACME{Challenge: config.HTTP01, Directory: config.LetsEncrypt}}
}

// want makes the rows those of entries.
func want(t *testing.T, s Store, entries ...config.Certificate) {
	t.Helper()
	if err := s.want(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

func named(t *testing.T, s Store, name string) Certificate {
	t.Helper()
	c, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// served are the hosts that edges get from what is stored, with their chains.
func servedFrom(t *testing.T, p *Publisher) map[string]string {
	t.Helper()
	out := map[string]string{}
	p.Serve = func(_ context.Context, secrets map[string]*tls.Secret) error {
		for host, s := range secrets {
			out[host] = string(s.GetTlsCertificate().GetCertificateChain().GetInlineBytes())
		}
		return nil
	}
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// A certificate goes from asked for to issued, renewed and gone; what edges have is
// always a whole one, and the key never leaves the store but for them.
func TestLifeOfACertificate(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := &Publisher{Store: s}
	want(t, s, asked("a", "a.example.com"))
	if c := named(t, s, "a"); c.State != StatePending || !c.due(time.Now().Add(time.Second)) || len(servedFrom(t, p)) != 0 {
		t.Errorf("%+v", c)
	}
	next := time.Now().Add(time.Hour)
	if err := s.failed(t.Context(), "a", "no such host", next); err != nil {
		t.Fatal(err)
	}
	if c := named(t, s, "a"); c.State != StateFailing || c.due(time.Now()) || c.Attempts != 1 || *c.LastError != "no such host" {
		t.Errorf("%+v", c)
	}
	first := pairFor(t, "a.example.com")
	if err := s.issued(t.Context(), "a", first, []string{"a.example.com"}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := named(t, s, "a")
	if c.State != StateValid || c.Attempts != 0 || c.LastError != nil || c.due(time.Now()) || !c.due(time.Now().Add(time.Hour)) || strings.Contains(*c.Chain, "PRIVATE") {
		t.Errorf("%+v", c)
	}
	if got := servedFrom(t, p); got["a.example.com"] != string(first.Chain) || len(got) != 1 {
		t.Errorf("%v", got)
	}
	if err := s.failed(t.Context(), "a", "the authority is away", next); err != nil {
		t.Fatal(err)
	}
	if got := servedFrom(t, p); got["a.example.com"] != string(first.Chain) {
		t.Error("a renewal that failed takes the certificate away")
	}
	if _, err := s.RenewNow(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if c := named(t, s, "a"); !c.due(time.Now().Add(time.Second)) {
		t.Errorf("%+v", c)
	}
	want(t, s, asked("a", "a.example.com", "b.example.com"))
	if err := s.issued(t.Context(), "a", first, []string{"a.example.com"}, next); !errors.Is(err, errGone) {
		t.Errorf("hosts that are no longer asked for: %v", err)
	}
	want(t, s)
	if err := s.issued(t.Context(), "a", first, []string{"a.example.com"}, next); !errors.Is(err, errGone) {
		t.Errorf("a name that no document asks for: %v", err)
	}
	if got := servedFrom(t, p); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Rows are whole, or without a certificate: the schema holds it.
func TestNoHalfCertificates(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	want(t, s, asked("a", "a.example.com"))
	if _, err := s.DB.Exec(t.Context(), `UPDATE certificates SET chain = 'x'`); err == nil {
		t.Error("a chain without its key is stored")
	}
	if err := s.issued(t.Context(), "a", pairFor(t, "a.example.com"), []string{"a.example.com"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Exec(t.Context(), `UPDATE certificates SET private_key = NULL`); err == nil {
		t.Error("a key is taken from its certificate")
	}
	var sealed []byte
	if err := s.DB.QueryRow(t.Context(), `SELECT private_key FROM certificates`).Scan(&sealed); err != nil || strings.Contains(string(sealed), "PRIVATE") {
		t.Errorf("%v %s", err, sealed)
	}
	// The key of another row does not open in this one, and edges keep what they have.
	p := &Publisher{Store: s}
	before := servedFrom(t, p)
	if _, err := s.DB.Exec(t.Context(), `UPDATE certificates SET private_key = $1, fingerprint = 'other'`, s.Box.Seal([]byte("k"), rowOf("b"))); err != nil {
		t.Fatal(err)
	}
	if got := servedFrom(t, p); got["a.example.com"] == "" || got["a.example.com"] != before["a.example.com"] {
		t.Errorf("%v", got)
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	old, young := pairFor(t, "a.example.com", "b.example.com"), pairFor(t, "a.example.com")
	young.Leaf.NotBefore = old.Leaf.NotBefore.Add(time.Second)
	for name, p := range map[string]Pair{"old": old, "young": young} {
		if c, err := s.Upload(t.Context(), name, p); err != nil || c.State != StateValid || c.Source != SourceUploaded {
			t.Fatal(c, err)
		}
	}
	want(t, s, asked("mine", "c.example.com"))
	for what, err := range map[string]error{
		"upload": func() error { _, err := s.Upload(t.Context(), "mine", old); return err }(),
		"remove": s.Remove(t.Context(), "mine"),
		"renew":  func() error { _, err := s.RenewNow(t.Context(), "old"); return err }(),
	} {
		if apierror.Code(err) != decision.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Remove(t.Context(), "nobody"); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	var entries int
	if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action LIKE 'certificate.%' AND after::text NOT LIKE '%PRIVATE%' OR action = 'certificate.remove'`).Scan(&entries); err != nil || entries != 3 {
		t.Error(entries, err)
	}
}

// The key of an account is the same whoever asks first, and bound to its account.
func TestAccountKeys(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	first, err := s.accountKey(t.Context(), "dir mail")
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.accountKey(t.Context(), "dir mail")
	if err != nil || !first.Equal(again) {
		t.Fatal(err)
	}
	if other, err := s.accountKey(t.Context(), "dir other"); err != nil || first.Equal(other) {
		t.Fatal(err)
	}
}

// What a solver presents, any replica answers, until it is cleaned up.
func TestChallengesAreAnswered(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	mux := http.NewServeMux()
	NewChallenges(s).Mount(mux)
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	web := acme.Challenge{Type: acme.ChallengeTypeHTTP01, Token: "tok", KeyAuthorization: "tok.print"}
	shake := acme.Challenge{Type: acme.ChallengeTypeTLSALPN01, Identifier: acme.Identifier{Type: "dns", Value: "A.example.com"}, Token: "t2", KeyAuthorization: "t2.print"}
	for _, c := range []acme.Challenge{web, shake} {
		if err := (stored{s}).Present(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{edgeapi.HTTPChallengePath + "tok": "tok.print", edgeapi.TLSChallengePath + "a.example.com": "t2.print"} {
		if code, text := ask(path); code != http.StatusOK || text != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	shake.KeyAuthorization = "t3.print" // of the next order for the host
	next := acme.Challenge{Type: acme.ChallengeTypeHTTP01, Token: "next", KeyAuthorization: "next.print"}
	if code, _ := ask(edgeapi.HTTPChallengePath + "next"); code != http.StatusNotFound {
		t.Errorf("before it is there: %d", code)
	}
	for _, c := range []acme.Challenge{next, shake} {
		if err := (stored{s}).Present(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{edgeapi.HTTPChallengePath + "next": "next.print", edgeapi.TLSChallengePath + "a.example.com": "t3.print"} {
		if code, text := ask(path); code != http.StatusOK || text != want {
			t.Errorf("%s, as soon as it is there: %d %s", path, code, text)
		}
	}
	for _, path := range []string{edgeapi.HTTPChallengePath + "%ff", edgeapi.HTTPChallengePath + "%00", edgeapi.HTTPChallengePath + "other", edgeapi.TLSChallengePath + "tok", edgeapi.HTTPChallengePath + strings.Repeat("x", 400)} {
		if code, _ := ask(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if err := (stored{s}).CleanUp(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM acme_challenges`).Scan(&left); err != nil || left != 2 {
		t.Error(left, err)
	}
}

// One replica leads; when its connection is cut, as when it is killed, another does.
func TestOneLeader(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pool := pgtest.Pool(t)
	s.DB = pool
	passes := make(chan string, 100)
	begin := func(name string) {
		m := &Manager{Store: s, Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, pool.Config().ConnConfig) }, Document: func(context.Context) (config.Document, error) {
			passes <- name
			return config.Document{}, nil
		}}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { m.Run(ctx); close(ended) }()
		t.Cleanup(func() { end(); <-ended })
	}
	begin("a")
	if got := <-passes; got != "a" {
		t.Fatal(got)
	}
	begin("b")
	for range 3 { // the leader looks at each announcement, and nobody else
		if _, err := pool.Exec(t.Context(), `SELECT pg_notify($1, '')`, Channel); err != nil {
			t.Fatal(err)
		}
		if got := <-passes; got != "a" {
			t.Errorf("%s leads as well", got)
		}
	}
	for next := ""; next != "b"; { // whoever is cut off may be the next again
		if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		next = <-passes
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	program := filepath.Join(dir, "hook")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" $SECRET >>"+out+"\n[ $1 = present ] || { echo refused; exit 3; }\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := NewHook(program, nil, os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	c := acme.Challenge{Type: acme.ChallengeTypeDNS01, Identifier: acme.Identifier{Type: "dns", Value: "a.example.com"}, KeyAuthorization: "x"}
	if err := h.Present(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := h.CleanUp(t.Context(), c); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), "present _acme-challenge.a.example.com "+c.DNS01KeyAuthorization()+"\n") {
		t.Errorf("%s %v", text, err)
	}
	if _, err := NewHook("hook --now", nil, ""); err == nil {
		t.Error("a relative path is taken")
	}
	if err := (Hook{}).Present(t.Context(), c); err == nil || !strings.Contains(err.Error(), "SLUICE_ACME_DNS_HOOK") {
		t.Error(err)
	}
}

// Attempts back off, so that no more than four are made in an hour.
func TestBackOff(t *testing.T) {
	t.Parallel()
	var at time.Duration
	n := 0
	for at < time.Hour {
		at += backOff(n, errors.New("no"))
		n++
	}
	if n != 4 {
		t.Errorf("%d attempts in an hour", n)
	}
	if d := backOff(1000, nil); d < longestPause || d > 2*longestPause {
		t.Error(d)
	}
	if d := backOff(0, acme.Problem{Type: acme.ProblemTypeRateLimited}); d < limitedPause {
		t.Error(d)
	}
	c := pairFor(t, "a.example.com").Leaf
	if at := renewal(c); at.Sub(c.NotBefore) != c.NotAfter.Sub(c.NotBefore)/3*2 {
		t.Error(at)
	}
}
