package clientcerts

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// atEdge is the record of a serial number; ok is false for nothing.
func atEdge(t *testing.T, db *pgxpool.Pool, serial string) (r keytable.Record, ok bool) {
	t.Helper()
	tag := clientcert.TagOfRevoked(serial)
	var raw []byte
	if err := db.QueryRow(t.Context(), `SELECT string_agg(record, '') FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	return keytable.Decode(raw)
}

func ptr(s string) *string { return &s }

func TestARevocationIsAtTheEdge(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	s := Store{DB: db}
	first, err := s.Revoke(t.Context(), "a1", ptr("CN=One"), "lost")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Revoke(t.Context(), "a1", ptr("CN=One"), "twice"); err != nil || again != first && again.ID != first.ID {
		t.Errorf("%+v %v", again, err)
	}
	var side errgroup.Group // two authorities with one number, at once
	for _, issuer := range []string{"CN=Two", "CN=Three"} {
		side.Go(func() error { _, err := s.Revoke(t.Context(), "a1", &issuer, ""); return err })
	}
	if err := side.Wait(); err != nil {
		t.Fatal(err)
	}
	if r, ok := atEdge(t, db, "a1"); !ok || r != clientcert.Revoked("a1", []string{"CN=One", "CN=Three", "CN=Two"}) {
		t.Errorf("%+v", r)
	}
	any, err := s.Revoke(t.Context(), "a1", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := atEdge(t, db, "a1"); r != clientcert.Revoked("a1", nil) {
		t.Errorf("of any authority: %+v", r)
	}
	if err := s.Restore(t.Context(), any.ID); err != nil {
		t.Fatal(err)
	}
	if r, _ := atEdge(t, db, "a1"); r != clientcert.Revoked("a1", []string{"CN=One", "CN=Three", "CN=Two"}) {
		t.Errorf("after that: %+v", r)
	}
}

func TestRevocationsOverHTTP(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	r := chi.NewRouter()
	API{Store: Store{DB: db, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }}}.AdminRoutes(r)
	call := func(method, path, body string) (int, map[string]any) {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		var v map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &v)
		return w.Code, v
	}
	const path = "/client-certificates/revoked"
	for name, body := range map[string]string{
		"nothing": `{}`, "both": `{"serial":"a","pem":"b"}`, "no number": `{"serial":"xyz"}`, "too long": `{"serial":"` + strings.Repeat("a", 81) + `"}`,
		"no PEM": `{"pem":"x"}`, "a reason of two lines": `{"serial":"a","reason":"a\nb"}`,
	} {
		if status, got := call("POST", path, body); status != 400 {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	status, made := call("POST", path, `{"serial":"00AB","reason":"lost"}`)
	if status != 201 || made["serial"] != "ab" || made["issuer"] != nil {
		t.Fatal(status, made)
	}
	if status, list := call("GET", path, ""); status != 200 || len(list["data"].([]any)) != 1 {
		t.Error(status, list)
	}
	if _, ok := atEdge(t, db, "ab"); !ok {
		t.Error("no edge knows it")
	}
	for _, want := range []int{204, 404} {
		if status, got := call("DELETE", path+"/"+made["id"].(string), ""); status != want {
			t.Errorf("%d %v, want %d", status, got, want)
		}
	}
	if _, ok := atEdge(t, db, "ab"); ok {
		t.Error("edges still know it")
	}
}

func TestPlainNames(t *testing.T) {
	t.Parallel()
	der := func(name pkix.RDNSequence) []byte {
		b, err := asn1.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	usual := pkix.Name{CommonName: "Test CA", Organization: []string{"Acme"}, Country: []string{"DE"}}
	several := pkix.Name{OrganizationalUnit: []string{"a", "b"}}
	for name, c := range map[string]struct {
		der  []byte
		want string
	}{
		"usual":          {der(usual.ToRDNSequence()), "CN=Test CA,O=Acme,C=DE"},
		"a comma":        {der(pkix.Name{CommonName: "a, b"}.ToRDNSequence()), ""},
		"a plus":         {der(pkix.Name{CommonName: "a+b"}.ToRDNSequence()), ""},
		"not ASCII":      {der(pkix.Name{CommonName: "é"}.ToRDNSequence()), ""},
		"two in a place": {der(several.ToRDNSequence()), ""},
		"another kind":   {der(pkix.RDNSequence{{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}}}), ""},
		"too long":       {der(pkix.Name{Organization: []string{"a"}, CommonName: strings.Repeat("a", 256)}.ToRDNSequence()), ""},
		"no name":        {[]byte{0x30, 0}, ""},
		"no DER":         {[]byte("x"), ""},
	} {
		if got := plainName(c.der); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
