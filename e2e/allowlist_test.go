package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// from is a client whose connections come from an address of this machine.
func from(t testing.TB, address string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// bearing adds a credential and headers to the requests of a client.
type bearing struct {
	next       http.RoundTripper
	credential string
	headers    []string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.credential)
	for i := 0; i+1 < len(b.headers); i += 2 {
		r.Header.Set(b.headers[i], b.headers[i+1])
	}
	return b.next.RoundTrip(r)
}

// agentFrom is agent for a client whose connections come from an address. nil:
// the gateway refuses it.
func (s *stack) agentFrom(t testing.TB, address, credential string, headers ...string) *sdk.ClientSession {
	t.Helper()
	c := from(t, address)
	c.Transport = bearing{c.Transport, credential, headers}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.url("/mcp"), HTTPClient: c}, nil)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// adminKey makes a key of an account by the admin API.
func (s *stack) adminKey(t testing.TB, account string, scopes ...string) (text, id string) {
	t.Helper()
	r := call(t, http.MethodPost, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+account+"/keys", s.dev["SLUICE_ADMIN_KEY"], map[string]any{"name": "k", "scopes": scopes})
	wantStatus(t, r, http.StatusCreated)
	k := into[struct{ Key, ID string }](t, r)
	return k.Key, k.ID
}

// An account says from where it may be used, itself, at the API and by an agent's
// tools. The address of whoever calls counts, also when a tool or the runtime
// calls the gateway for them from this machine, 127.0.0.1; nobody can claim one.
func TestAccountsOwnAllowlist(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	account := s.account(t, "local")
	key, keyID := s.adminKey(t, account, "users:*", "streams:*", "transcribe:write")
	s.accepted(t, key)
	const home, away = "127.0.0.2", "127.0.0.1"
	set := func(client *http.Client, query string, addresses ...string) response {
		t.Helper()
		body := `{"addresses": ["` + strings.Join(addresses, `", "`) + `"]}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url("/v1/account/allowlist"+query), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		return send(t, client, req, key)
	}
	get := func(address string, headers ...string) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url("/v1/account/allowlist"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		return send(t, from(t, address), req, key)
	}
	wantError(t, set(from(t, home), "", "192.0.2.0/24"), 400, "invalid_request") // shuts out whoever sets it
	wantError(t, set(from(t, home), "", "nowhere"), 400, "invalid_request")
	wantStatus(t, set(from(t, home), "", home+"/32", "2001:db8::/32"), 200)
	eventually(t, "the list holds", func() error {
		r := get(away)
		return unless(nil, r, http.StatusForbidden)
	})
	wantError(t, get(away), 403, "AUTH_003")
	r := get(home)
	wantStatus(t, r, 200)
	if got := into[struct{ Addresses []string }](t, r).Addresses; fmt.Sprint(got) != "[127.0.0.2/32 2001:db8::/32]" {
		t.Errorf("the list is %v", got)
	}
	for _, claim := range []string{"Sluice-Voucher", "X-Sluice-Client-Address", "X-Forwarded-For", "X-Real-IP", "Forwarded", "True-Client-IP"} {
		for _, value := range []string{home, "c1;a=127.0.0.2;k=" + keyID + ";e=9999999999;m=" + strings.Repeat("0", 64)} {
			wantError(t, get(away, claim, value), 403, "AUTH_003")
		}
	}
	t.Run("tools", func(t *testing.T) { toolsOfAnAllowlist(t, s, home, away, key, keyID) })
	t.Run("runtime", func(t *testing.T) {
		for address, status := range map[string]int{home: 400, away: 403} { // it is no sound
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.dev["SLUICE_RUNTIME_URL"]+"/v1/transcribe", strings.NewReader("sound"))
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, send(t, from(t, address), req, key), status)
		}
	})
	wantStatus(t, set(from(t, home), "?force=true", "192.0.2.0/24"), 200)
	eventually(t, "a forced list shuts out whoever set it", func() error {
		r := get(home)
		return unless(nil, r, http.StatusForbidden)
	})
}

// send makes a request with a credential and reads the answer.
func send(t testing.TB, c *http.Client, req *http.Request, credential string) response {
	t.Helper()
	req.Header.Set("Authorization", "Bearer "+credential)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{Response: res, body: string(b)}
}

// toolsOfAnAllowlist uses tools from a listed and another address, and looks whom
// the platform has seen.
func toolsOfAnAllowlist(t *testing.T, s *stack, home, away, key, keyID string) {
	agent := s.agentFrom(t, home, key)
	if agent == nil {
		t.Fatal("the agent is not let in")
	}
	made := must(t, agent, "createStream", map[string]any{"title": "From home", "protocol": "rtmp"})
	must(t, agent, "getStream", map[string]any{"id": made["id"]})
	if s.agentFrom(t, away, key) != nil || s.agentFrom(t, away, key, "Sluice-Voucher", home, "X-Sluice-Client-Address", home) != nil {
		t.Error("an agent elsewhere is let in")
	}
	must(t, agent, "setAllowlist", map[string]any{"addresses": []string{home}})
	if _, failure := use(t, agent, "setAllowlist", map[string]any{"addresses": []string{away}}); !strings.Contains(failure, "shuts out the address that you call from, "+home) {
		t.Errorf("a list with the service's own address: %s", failure)
	}
	r := call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/audit?"+url.Values{"actor": {keyID}, "limit": {"100"}}.Encode(), s.dev["SLUICE_ADMIN_KEY"], nil)
	wantStatus(t, r, http.StatusOK)
	seen := 0
	for _, e := range into[struct {
		Data []struct{ Actor, Action, Address string }
	}](t, r).Data {
		if e.Actor == keyID {
			seen++
			if e.Address != home {
				t.Errorf("the audit log has %s from %s", e.Action, e.Address)
			}
		}
	}
	if seen < 2 {
		t.Errorf("the audit log has %d changes of the key: %.500s", seen, r.body)
	}
}
