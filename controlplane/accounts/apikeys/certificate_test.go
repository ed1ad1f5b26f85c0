package apikeys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// recordOf is what edges know of the certificates with a name; ok is false for nothing.
func recordOf(t *testing.T, db postgres.DB, kind clientcert.Kind, name string) (r keytable.Record, ok bool) {
	t.Helper()
	tag := keytable.TagOfKey(clientcert.Hash(kind, name))
	var raw []byte
	if err := db.QueryRow(t.Context(), `SELECT string_agg(record, '') FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	return keytable.Decode(raw)
}

// certificateText is PEM of a certificate that ends at a time, and its SHA-256.
func certificateText(t *testing.T, end time.Time) (text, sum string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(der)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), hex.EncodeToString(hash[:])
}

const certificatesPath = "/admin/v1/accounts/" + account + "/keys"

// mapping is the body that maps a certificate; more are further fields.
func mapping(certificate map[string]string, more string) string {
	b, _ := json.Marshal(certificate)
	return fmt.Sprintf(`{"name":"laptop","scopes":["streams:read"],"certificate":%s%s}`, b, more)
}

func TestACertificateIsACredential(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	h := serve(s, "*")
	const uri = "spiffe://acme/laptop"
	body := mapping(map[string]string{"uri": uri}, `,"rate_limit_per_minute":7`)
	status, made := call(h, "POST", certificatesPath, body)
	if _, text := made["key"]; status != 201 || text || made["certificate"] != "uri:"+uri || made["expires_at"] != nil {
		t.Fatal(status, made)
	}
	id := made["id"].(string)
	r, ok := recordOf(t, db, clientcert.URI, uri)
	number, _ := keytable.ParseID(keytable.KeyPrefix, id)
	if !ok || r.Kind != keytable.KindKey || r.ID != number || r.Account != 1 || r.Limit != 7 || r.Expires != 0 {
		t.Errorf("%+v", r)
	}
	if status, got := call(h, "POST", certificatesPath, body); status != 409 {
		t.Errorf("mapped twice: %d %v", status, got)
	}
	if status, got := call(h, "POST", "/admin/v1/keys/"+id+"/rotate", ""); status != 409 {
		t.Errorf("rotated: %d %v", status, got)
	}
	if status, got := call(h, "PATCH", "/v1/auth/keys/"+id, `{"name":"mine","rate_limit_per_minute":9}`); status != 200 || got["certificate"] != "uri:"+uri {
		t.Errorf("its account renames it: %d %v", status, got)
	}
	if r, _ := recordOf(t, db, clientcert.URI, uri); r.Limit != 9 {
		t.Errorf("%+v", r)
	}
	if status, _ := call(h, "DELETE", "/v1/auth/keys/"+id, ""); status != 204 {
		t.Error(status)
	}
	if r, ok := recordOf(t, db, clientcert.URI, uri); ok {
		t.Errorf("edges still know it: %+v", r)
	}
	if status, got := call(h, "POST", certificatesPath, body); status != 201 || got["id"] == id {
		t.Errorf("mapped anew: %d %v", status, got)
	}
	if _, ok := recordOf(t, db, clientcert.URI, uri); !ok {
		t.Error("edges do not know it anew")
	}
	for range 2 { // each revocation frees the name
		_, list := call(h, "GET", "/v1/auth/keys", "")
		live := list["data"].([]any)[0].(map[string]any)["id"].(string)
		call(h, "DELETE", "/v1/auth/keys/"+live, "")
		if status, got := call(h, "POST", certificatesPath, body); status != 201 {
			t.Error(status, got)
		}
	}
}

func TestACertificateByItself(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	h := serve(s, "*")
	end := now.Add(48 * time.Hour)
	text, sum := certificateText(t, end)
	status, made := call(h, "POST", certificatesPath, mapping(map[string]string{"pem": text}, ""))
	if status != 201 || made["certificate"] != "sha256:"+sum || made["expires_at"] != end.Format(time.RFC3339) {
		t.Fatal(status, made)
	}
	if r, ok := recordOf(t, db, clientcert.SHA256, sum); !ok || r.Expires != uint32(end.Unix()) {
		t.Errorf("%+v", r)
	}
	colons := strings.ToUpper(sum[:2] + ":" + sum[2:])
	if status, _ := call(h, "POST", certificatesPath, mapping(map[string]string{"sha256": colons}, "")); status != 409 {
		t.Errorf("the same in another form: %d", status)
	}
}

func TestCertificatesThatAreNone(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	h := serve(s, "*")
	ended, _ := certificateText(t, now)
	good, _ := certificateText(t, now.Add(time.Hour))
	for name, body := range map[string]string{
		"nothing":             mapping(map[string]string{}, ""),
		"two names":           mapping(map[string]string{"uri": "spiffe://a", "cn": "a"}, ""),
		"a comma":             mapping(map[string]string{"uri": "spiffe://a,spiffe://b"}, ""),
		"a separator":         mapping(map[string]string{"cn": "a|b"}, ""),
		"not ASCII":           mapping(map[string]string{"cn": "é"}, ""),
		"too long":            mapping(map[string]string{"cn": strings.Repeat("a", 256)}, ""),
		"an escaped sign":     mapping(map[string]string{"cn": "a+b"}, ""),
		"no URI":              mapping(map[string]string{"uri": "laptop"}, ""),
		"no DNS name":         mapping(map[string]string{"dns": "a b"}, ""),
		"no address":          mapping(map[string]string{"email": "a"}, ""),
		"no SHA-256":          mapping(map[string]string{"sha256": "abcd"}, ""),
		"no PEM":              mapping(map[string]string{"pem": "abcd"}, ""),
		"two certificates":    mapping(map[string]string{"pem": good + good}, ""),
		"one that has ended":  mapping(map[string]string{"pem": ended}, ""),
		"every scope":         `{"name":"a","scopes":["*"],"certificate":{"cn":"a"}}`,
		"an unknown field":    `{"name":"a","scopes":["streams:read"],"certificate":{"ip":"a"}}`,
		"an end that is past": mapping(map[string]string{"cn": "a"}, `,"expires_at":"2020-01-01T00:00:00Z"`),
	} {
		if status, got := call(h, "POST", certificatesPath, body); status != 400 {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	// Whoever names a certificate need not have it, so users cannot.
	if status, got := call(h, "POST", "/v1/auth/keys", mapping(map[string]string{"cn": "a"}, "")); status != 400 {
		t.Errorf("a user: %d %v", status, got)
	}
	for kind, name := range map[string]string{"dns": "CI.acme.example", "email": "ci+x@acme.example", "cn": "ci 7"} {
		if status, got := call(h, "POST", certificatesPath, mapping(map[string]string{kind: name}, "")); status != 201 {
			t.Errorf("%s: %d %v", kind, status, got)
		}
	}
}
