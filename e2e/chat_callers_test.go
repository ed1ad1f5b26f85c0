package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"
)

// agents connects the official MCP client, without a key and with one.
func agents(t *testing.T, s *stack, _ *model) {
	for key, want := range map[string]bool{"": false, s.dev["SLUICE_API_KEY"]: true} {
		client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: s.dev["SLUICE_RUNTIME_URL"] + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) == 0 {
			t.Errorf("key %v: tools/list: %v", want, err)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "complete", Arguments: map[string]any{"model": "echo-1", "prompt": "hello"}})
		if called := err == nil && !res.IsError; called != want {
			t.Errorf("key %v: tools/call: %v", want, err)
		}
	}
}

// callers are people signed in, applications with a token, and keys: each with the scope.
func callers(t *testing.T, s *stack, _ *model) {
	const redirect = "http://127.0.0.1:49152/callback"
	app := s.newApp(t, "http://127.0.0.1/callback", "--scope", "chat:write")
	c, verifier := s.library(t, app, redirect), oauth2.GenerateVerifier()
	c.Scopes = []string{"chat:write"}
	q := newPerson(t).allows(s, c.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)))
	token, err := c.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	without, _ := s.newKey(t, "streams:read")
	lists, _ := s.newKey(t, "chat:read")
	ask := json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	for _, x := range []struct {
		name, credential string
		chat, models     int
	}{
		{"a session", s.dev["SLUICE_SESSION_TOKEN"], 200, 200},
		{"an application", token.AccessToken, 200, 403},
		{"a key with another scope", without, 403, 403},
		{"a key that may list", lists, 403, 200},
	} {
		eventually(t, x.name+" is known", func() error {
			chat, err := try("POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions", x.credential, ask)
			if err := unless(err, chat, x.chat); err != nil {
				return err
			}
			models, err := try("GET", s.dev["SLUICE_RUNTIME_URL"]+"/v1/models", x.credential, nil)
			return unless(err, models, x.models)
		})
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: s.dev["SLUICE_RUNTIME_URL"] + "/mcp", HTTPClient: &http.Client{Transport: keyed{x.credential}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "complete", Arguments: map[string]any{"model": "echo-1", "prompt": "hello"}})
		if err != nil || res.IsError != (x.chat != 200) {
			t.Errorf("%s completes as an agent: %+v %v", x.name, res, err)
		}
		_ = session.Close()
	}
	r := call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/mcp", "", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_models","arguments":{}}}`))
	wantStatus(t, r, 401)
	_, metadata, _ := strings.Cut(r.Header.Get("WWW-Authenticate"), `resource_metadata="`)
	resource := call(t, "GET", strings.TrimSuffix(metadata, `"`), "", nil)
	if wantStatus(t, resource, 200); !strings.Contains(resource.body, `"resource":"`+s.dev["SLUICE_RUNTIME_URL"]+`/mcp"`) || !strings.Contains(resource.body, s.dev["SLUICE_AUTH_URL"]) {
		t.Error(resource.body)
	}
}

// keyed adds a credential to a client's requests.
type keyed struct{ key string }

// RoundTrip adds the credential, if there is one.
func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return http.DefaultTransport.RoundTrip(r)
}
