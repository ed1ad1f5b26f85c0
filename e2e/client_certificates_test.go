package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issued is a certificate with its key, in memory and in files.
type issued struct {
	tls.Certificate
	pem, file, keyFile string
}

var serials = big.NewInt(1000)

// issue makes a certificate; with a nil by an authority of its own.
func issue(t testing.TB, by *authority, change func(*x509.Certificate)) (authority, issued) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serials = new(big.Int).Add(serials, big.NewInt(1))
	c := &x509.Certificate{SerialNumber: serials, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true}
	if change != nil {
		change(c)
	}
	parent := authority{c, key}
	if by != nil {
		parent = *by
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent.cert, key.Public(), parent.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out := issued{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")}
	for name, text := range map[string][]byte{out.file: []byte(out.pem), out.keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority{cert, key}, out
}

// newAuthority makes an authority with a name.
func newAuthority(t testing.TB, name pkix.Name) (authority, issued) {
	t.Helper()
	return issue(t, nil, func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.KeyUsage, c.ExtKeyUsage = name, true, x509.KeyUsageCertSign, nil
	})
}

// forName gives a certificate names.
func forName(cn, uri string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: cn, Organization: []string{"Acme"}}
		if u, err := url.Parse(uri); err == nil && uri != "" {
			c.URIs = []*url.URL{u}
		}
	}
}

// mutual is a stack whose gateway speaks TLS, and the folder of its certificates.
func mutual(t testing.TB) (*stack, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	makeCerts(t, dir)
	return own(t, map[string]string{"SLUICE_PROFILE": "gateway", "SLUICE_TLS_CERT": filepath.Join(dir, "gateway.pem"), "SLUICE_TLS_KEY": filepath.Join(dir, "gateway.key")}), dir
}

// mutualTest is what the parts of TestClientCertificates share.
type mutualTest struct {
	*stack
	dir string // of the gateway's certificates
}

// client shows a certificate, or none; change is of its TLS configuration.
func (m mutualTest) client(t testing.TB, c *issued, h2 bool, change ...func(*tls.Config)) *http.Transport {
	t.Helper()
	config := trusting(t, m.dir)
	if c != nil { // whether or not the gateway says that it believes its authority
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.Certificate, nil }
	}
	for _, f := range change {
		f(config)
	}
	rt := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: h2}
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

// get asks for a path.
func (m mutualTest) get(rt http.RoundTripper, path string, headers ...string) (response, error) {
	req, err := http.NewRequest(http.MethodGet, m.url(path), nil)
	if err != nil {
		return response{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return response{Response: res, body: string(b)}, err
}

// answers wants an answer with a status, an error's code and the issue in its details; "" for
// neither.
func answers(r response, err error, status int, code, issue string) error {
	if err != nil {
		return err
	}
	var e envelope
	_ = json.Unmarshal([]byte(r.body), &e)
	found := ""
	if len(e.Error.Details) > 0 {
		found = e.Error.Details[0].Issue
	}
	if r.StatusCode != status || e.Error.Code != code || issue != "" && found != issue {
		return fmt.Errorf("%d %s, want %d %s %q", r.StatusCode, r.body, status, code, issue)
	}
	return nil
}

// add maps a certificate by `sluice client-cert add` and returns the key's id.
func (m mutualTest) add(t testing.TB, args ...string) string {
	t.Helper()
	status, out, errs := sluice(t, m.cli(), append([]string{"client-cert", "add", "-o", "json"}, args...)...)
	if status != 0 {
		t.Fatal(args, out, errs)
	}
	return intoText[struct{ ID string }](t, out).ID
}

const mutualRoutes = `
include: [builtin]
anonymous_per_minute: 100000
client_certificates: {ca: %q, depth: 2}
products:
  - {name: shop, upstream: %q}
routes:
  - {name: shop.machines, path: /machines, product: shop, auth: [certificate], scope: "shop:use", forward_certificate: true}
  - {name: shop.both, path: /both, product: shop, auth: [key, certificate], scope: "shop:use"}
  - {name: shop.other, path: /other, product: shop, auth: [certificate], scope: "shop:other"}
  - {name: shop.open, path: /open, product: shop, auth: [none]}
`

// Clients are known by certificates of authorities that the document names, on routes
// that ask for one: by the certificate itself or by a name in it, with the scopes and
// limits of a key, until it is revoked.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(r.Header) }))
	t.Cleanup(product.Close)
	s, dir := mutual(t)
	m := mutualTest{s, dir}
	ca, root := newAuthority(t, pkix.Name{CommonName: "Test CA", Organization: []string{"Acme"}, Country: []string{"DE"}})
	second, secondRoot := newAuthority(t, pkix.Name{CommonName: "Second, with a comma"})
	strange, _ := newAuthority(t, pkix.Name{CommonName: "Strange CA"})
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, mutualRoutes, root.pem+secondRoot.pem, product.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := sluice(t, s.cli(), "apply", "-f", file, "--wait", "--timeout", "2m"); status != 0 {
		t.Fatal(out, errs)
	}
	_, laptop := issue(t, &ca, forName("laptop", "spiffe://acme.example/laptop"))
	m.add(t, "--uri", "spiffe://acme.example/laptop", "--name", "laptop", "--scope", "shop:use")
	eventually(t, "a mapped certificate is let in", func() error {
		r, err := m.get(m.client(t, &laptop, false), "/machines")
		return answers(r, err, 200, "", "")
	})
	t.Run("who gets in", func(t *testing.T) { m.whoGetsIn(t, ca, second, strange, laptop) })
	t.Run("what the product is told", func(t *testing.T) { m.whatTheProductIsTold(t, laptop) })
	t.Run("a certificate and a key", func(t *testing.T) { m.certificateAndKey(t, laptop) })
	t.Run("limits, and who it was", func(t *testing.T) { m.limitsOfACertificate(t, ca) })
	t.Run("curl", func(t *testing.T) { m.withCurl(t, laptop) })
	t.Run("an intermediate authority", func(t *testing.T) { m.chains(t, ca) })
	t.Run("revoked", func(t *testing.T) { m.revoked(t, ca, second) })
	t.Run("expired on an open connection", func(t *testing.T) { m.expiresWhileOpen(t, ca) })
	t.Run("another authority", func(t *testing.T) { m.replaceAuthorities(t, file, product.URL, secondRoot, laptop, second) })
}

func (m mutualTest) whoGetsIn(t *testing.T, ca, second, strange authority, laptop issued) {
	_, byItself := issue(t, &ca, forName("itself", ""))
	_, unknown := issue(t, &second, forName("unknown", "spiffe://acme.example/unknown"))
	_, impostor := issue(t, &second, forName("x", "spiffe://acme.example/x,spiffe://acme.example/laptop"))
	_, common := issue(t, &second, forName("robot 7", ""))
	_, foreign := issue(t, &strange, forName("laptop", "spiffe://acme.example/laptop"))
	_, expired := issue(t, &ca, func(c *x509.Certificate) {
		forName("laptop", "spiffe://acme.example/laptop")(c)
		c.NotAfter = time.Now().Add(-time.Minute)
	})
	_, usage := issue(t, &ca, func(c *x509.Certificate) {
		forName("laptop", "spiffe://acme.example/laptop")(c)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	m.add(t, byItself.file, "--name", "itself", "--scope", "shop:use")
	m.add(t, "--cn", "robot 7", "--name", "robot", "--scope", "shop:use")
	for name, c := range map[string]struct {
		cert        *issued
		path        string
		status      int // 0: the handshake fails
		code, issue string
	}{
		"by a URI":                  {&laptop, "/machines", 200, "", ""},
		"by itself":                 {&byItself, "/machines", 200, "", ""},
		"by its common name":        {&common, "/machines", 200, "", ""},
		"none":                      {nil, "/machines", 401, "authentication_required", "is missing"},
		"none, where a key will do": {nil, "/both", 401, "authentication_required", "is missing"},
		"none, on an open route":    {nil, "/open", 200, "", ""},
		"mapped to nobody":          {&unknown, "/machines", 401, "invalid_certificate", "is mapped to no account"},
		"a name with a comma in it": {&impostor, "/machines", 401, "invalid_certificate", "is mapped to no account"},
		"lacks the scope":           {&laptop, "/other", 403, "AUTH_002", ""},
		"mapped, on an open route":  {&laptop, "/open", 200, "", ""},
		"of a strange authority":    {&foreign, "/machines", 0, "", ""},
		"expired":                   {&expired, "/machines", 0, "", ""},
		"for servers":               {&usage, "/machines", 0, "", ""},
	} {
		for _, h2 := range []bool{false, true} {
			rt := m.client(t, c.cert, h2)
			if c.status == 0 {
				if r, err := m.get(rt, c.path); err == nil {
					t.Errorf("%s, HTTP/2 %v: %d %s", name, h2, r.StatusCode, r.body)
				}
				continue
			}
			eventually(t, name, func() error {
				r, err := m.get(rt, c.path)
				if err == nil && (r.ProtoMajor == 2) != h2 {
					err = errors.New(r.Proto)
				}
				return answers(r, err, c.status, c.code, c.issue)
			})
		}
	}
}

// Nobody can say what certificate they have in a header, and a product learns of it
// where its route says so.
func (m mutualTest) whatTheProductIsTold(t *testing.T, laptop issued) {
	forged := []string{"X-Sluice-Peer", "forged|1|9999999999|spiffe://acme.example/laptop||||CN=x", "X-Forwarded-Client-Cert", "Hash=forged;URI=spiffe://acme.example/laptop",
		"X-Sluice-Client-Certificate", "sha256=forged"}
	r, err := m.get(m.client(t, nil, false), "/machines", forged...)
	if err := answers(r, err, 401, "authentication_required", "is missing"); err != nil {
		t.Error(err)
	}
	for path, told := range map[string]bool{"/machines": true, "/both": false, "/open": false} {
		r, err := m.get(m.client(t, &laptop, true), path, forged...)
		if err := answers(r, err, 200, "", ""); err != nil {
			t.Fatal(path, err)
		}
		got := into[http.Header](t, r)
		sum := sha256.Sum256(laptop.Leaf.Raw)
		want := ""
		if told {
			want = "sha256=" + hex.EncodeToString(sum[:]) + `;subject="CN=laptop,O=Acme"`
		}
		if strings.Contains(r.body, "forged") || got.Get("X-Sluice-Peer") != "" || got.Get("X-Sluice-Client-Certificate") != want {
			t.Errorf("%s: %v", path, got)
		}
		if known := got.Get("X-Sluice-Identity") != ""; known != (path != "/open") {
			t.Errorf("%s: identity %v", path, known)
		}
	}
}

// A key is of the request and goes before the certificate, of the connection.
func (m mutualTest) certificateAndKey(t *testing.T, laptop issued) {
	account := m.account(t, "free")
	key, id := m.adminKey(t, account, "shop:use")
	rt := m.client(t, &laptop, true)
	eventually(t, "the key's account is charged", func() error {
		r, err := m.get(rt, "/both", "Authorization", "Bearer "+key)
		if err := answers(r, err, 200, "", ""); err != nil {
			return err
		}
		if who := into[http.Header](t, r).Get("X-Sluice-Identity"); !strings.Contains(who, id) {
			return errors.New(who)
		}
		return nil
	})
	r, err := m.get(rt, "/both", "Authorization", "Bearer slk_bad")
	if err := answers(r, err, 401, "invalid_api_key", ""); err != nil {
		t.Error("a bad key:", err)
	}
	r, err = m.get(rt, "/machines", "Authorization", "Bearer "+key)
	if err := answers(r, err, 200, "", ""); err != nil || strings.Contains(r.body, id) {
		t.Error("where certificates alone count:", err, r.body)
	}
	r, err = m.get(m.client(t, nil, true), "/machines", "Authorization", "Bearer "+key)
	if err := answers(r, err, 401, "authentication_required", "is missing"); err != nil {
		t.Error("a key in place of a certificate:", err)
	}
}

func (m mutualTest) limitsOfACertificate(t *testing.T, ca authority) {
	account := m.account(t, "free")
	_, c := issue(t, &ca, forName("limited", ""))
	id := m.add(t, c.file, "--account", account, "--name", "limited", "--scope", "shop:use", "--per-minute", "2")
	rt := m.client(t, &c, true)
	var last response
	eventually(t, "its own limit is reached", func() (err error) {
		last, err = m.get(rt, "/machines")
		return answers(last, err, 429, "rate_limit_exceeded", "")
	})
	eventually(t, "the request is explained", func() error {
		r, err := try(http.MethodGet, m.dev["SLUICE_ADMIN_URL"]+"/admin/v1/requests/"+last.Header.Get("X-Request-Id"), m.dev["SLUICE_ADMIN_KEY"], nil)
		if err := unless(err, r, 200); err != nil {
			return err
		}
		if !strings.Contains(r.body, id) || !strings.Contains(r.body, account) {
			return errors.New(r.body)
		}
		return nil
	})
	eventually(t, "its last use is known", func() error {
		r, err := try(http.MethodGet, m.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+account+"/keys", m.dev["SLUICE_ADMIN_KEY"], nil)
		if err := unless(err, r, 200); err != nil {
			return err
		}
		for _, k := range into[struct {
			Data []struct {
				ID         string
				LastUsedAt *time.Time `json:"last_used_at"`
			}
		}](t, r).Data {
			if k.ID == id && k.LastUsedAt != nil {
				return nil
			}
		}
		return errors.New(r.body)
	})
}

func (m mutualTest) withCurl(t *testing.T, laptop issued) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--http1.1"}, {"--http2"}, {"--tls-max", "1.2"}} {
		args = append(args, "-fsS", "--cacert", filepath.Join(m.dir, "ca.pem"), "--cert", laptop.file, "--key", laptop.keyFile, m.url("/machines"))
		if out, err := exec.CommandContext(t.Context(), curl, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "CN=laptop,O=Acme") {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
}

// The document lets one authority stand between a certificate and those that it names.
func (m mutualTest) chains(t *testing.T, ca authority) {
	under := func(by *authority, name string) (authority, issued) {
		return issue(t, by, func(c *x509.Certificate) {
			c.Subject, c.IsCA, c.KeyUsage, c.ExtKeyUsage = pkix.Name{CommonName: name}, true, x509.KeyUsageCertSign, nil
		})
	}
	one, oneCert := under(&ca, "One")
	two, twoCert := under(&one, "Two")
	_, near := issue(t, &one, forName("near", ""))
	_, far := issue(t, &two, forName("near", ""))
	m.add(t, "--cn", "near", "--name", "near", "--scope", "shop:use")
	near.Certificate.Certificate = append(near.Certificate.Certificate, oneCert.Leaf.Raw)
	far.Certificate.Certificate = append(far.Certificate.Certificate, twoCert.Leaf.Raw, oneCert.Leaf.Raw)
	eventually(t, "one is let in", func() error {
		r, err := m.get(m.client(t, &near, true), "/machines")
		return answers(r, err, 200, "", "")
	})
	if r, err := m.get(m.client(t, &far, true), "/machines"); err == nil {
		t.Errorf("two authorities: %d %s", r.StatusCode, r.body)
	}
}

// A revoked certificate is refused on connections that are open and on sessions that
// are resumed; one of the same name is not, nor one of another authority with the
// same serial number.
func (m mutualTest) revoked(t *testing.T, ca, second authority) {
	const uri = "spiffe://acme.example/fleet"
	m.add(t, "--uri", uri, "--name", "fleet", "--scope", "shop:use")
	_, lost := issue(t, &ca, forName("lost", uri))
	_, next := issue(t, &ca, forName("next", uri))
	_, twin := issue(t, &second, func(c *x509.Certificate) {
		forName("twin", uri)(c)
		c.SerialNumber = lost.Leaf.SerialNumber
	})
	open := m.client(t, &lost, false)
	resumed := map[uint16]*http.Transport{}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		resumed[version] = m.client(t, &lost, false, func(c *tls.Config) { c.ClientSessionCache, c.MaxVersion = tls.NewLRUClientSessionCache(1), version })
		resumed[version].DisableKeepAlives = true
	}
	for _, rt := range []http.RoundTripper{open, resumed[tls.VersionTLS12], resumed[tls.VersionTLS13], m.client(t, &next, true), m.client(t, &twin, true)} {
		eventually(t, "all are let in", func() error {
			r, err := m.get(rt, "/machines")
			return answers(r, err, 200, "", "")
		})
	}
	status, out, errs := sluice(t, m.cli(), "client-cert", "revoke", lost.file, "--reason", "lost on a train", "-o", "json")
	if status != 0 {
		t.Fatal(out, errs)
	}
	entry := intoText[struct{ ID, Issuer string }](t, out)
	if entry.Issuer != "CN=Test CA,O=Acme,C=DE" {
		t.Error(out)
	}
	eventually(t, "it is refused on the open connection", func() error {
		r, err, again := m.getOn(open, "/machines")
		if err == nil && !again {
			err = errors.New("another connection was made")
		}
		return answers(r, err, 401, "invalid_certificate", "is revoked")
	})
	for version, rt := range resumed {
		r, err := m.get(rt, "/machines")
		if err := answers(r, err, 401, "invalid_certificate", "is revoked"); err != nil || !r.TLS.DidResume || r.TLS.Version != version {
			t.Errorf("on a resumed session of %x: %v %+v", version, err, r.TLS)
		}
	}
	for name, c := range map[string]*issued{"the next": &next, "the same number of another authority": &twin} {
		r, err := m.get(m.client(t, c, true), "/machines")
		if err := answers(r, err, 200, "", ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if status, out, errs := sluice(t, m.cli(), "client-cert", "revoke", twin.file); status != 0 { // an authority whose name has a comma
		t.Fatal(out, errs)
	}
	eventually(t, "the other authority's is refused", func() error {
		r, err := m.get(m.client(t, &twin, true), "/machines")
		return answers(r, err, 401, "invalid_certificate", "is revoked")
	})
	if status, out, errs := sluice(t, m.cli(), "client-cert", "revoked"); status != 0 || !strings.Contains(out, "lost on a train") {
		t.Error(out, errs)
	}
}

// getOn is get; again says that it used a connection that was there.
func (m mutualTest) getOn(rt http.RoundTripper, path string) (r response, err error, again bool) {
	req, err := http.NewRequest(http.MethodGet, m.url(path), nil)
	if err != nil {
		return r, err, false
	}
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }}
	res, err := rt.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return r, err, again
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return response{Response: res, body: string(b)}, err, again
}

func (m mutualTest) expiresWhileOpen(t *testing.T, ca authority) {
	m.add(t, "--cn", "short", "--name", "short", "--scope", "shop:use")
	_, short := issue(t, &ca, func(c *x509.Certificate) {
		forName("short", "")(c)
		c.NotAfter = time.Now().Add(10 * time.Second)
	})
	rt := m.client(t, &short, true)
	if _, err := m.get(rt, "/open"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused after its end", func() error {
		r, err, again := m.getOn(rt, "/machines")
		if err == nil && !again {
			t.Fatal("another connection was made")
		}
		return answers(r, err, 401, "AUTH_001", "has expired since the connection began")
	})
}

// An authority that the document no longer names is believed no longer.
func (m mutualTest) replaceAuthorities(t *testing.T, file, product string, left issued, laptop issued, second authority) {
	if err := os.WriteFile(file, fmt.Appendf(nil, mutualRoutes, left.pem, product), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := sluice(t, m.cli(), "apply", "-f", file, "--wait", "--timeout", "2m"); status != 0 {
		t.Fatal(out, errs)
	}
	eventually(t, "the certificate is refused", func() error {
		if r, err := m.get(m.client(t, &laptop, true), "/open"); err == nil {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	_, other := issue(t, &second, forName("laptop", "spiffe://acme.example/laptop"))
	for _, c := range []*issued{&other, nil} {
		r, err := m.get(m.client(t, c, true), "/open")
		if err := answers(r, err, 200, "", ""); err != nil {
			t.Error(err)
		}
	}
}

// The boxes of the page about client certificates, one after another as a reader runs
// them.
func TestClientCertificatesPage(t *testing.T) {
	t.Parallel()
	list := examples(t, "sh")["client-certificates"]
	if len(list) < 4 {
		t.Fatalf("only %d boxes", len(list))
	}
	s, dir := mutual(t)
	whole := list[0]
	for _, x := range list[1:] {
		whole.text += x.text
	}
	whole.text = strings.ReplaceAll(whole.text, "http://127.0.0.1:3000", ownService(t))
	whole.keepsWord(t, append(s.reader(t), "CURL_CA_BUNDLE="+filepath.Join(dir, "ca.pem")))
}
