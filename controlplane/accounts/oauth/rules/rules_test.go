package rules

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestRedirectAddressesThatCanBeRegistered(t *testing.T) {
	t.Parallel()
	for address, fault := range map[string]string{
		"https://a.example/cb":                           "",
		"https://a.example":                              "",
		"https://a.example:8443/cb?tenant=1":             "",
		"http://127.0.0.1/cb":                            "",
		"http://127.0.0.1:8080/cb":                       "",
		"http://[::1]:8080/cb":                           "",
		"http://localhost:3000/cb":                       "",
		"com.example.app:/cb":                            "",
		"":                                               "is not an address",
		"/cb":                                            "has a scheme that anybody could use",
		"//a.example/cb":                                 "has a scheme that anybody could use",
		"https:///cb":                                    "has no host",
		"https://*.a.example/cb":                         "is not an address",
		"https://a.example/cb#x":                         "has a fragment",
		"https://a.example/cb#":                          "has a fragment",
		"https://user:pass@a.example/cb":                 "has a user name",
		"http://a.example/cb":                            "is http to another machine",
		"http://127.0.0.1.a.example/cb":                  "is http to another machine",
		"javascript:alert(1)":                            "has a scheme that anybody could use",
		"data:text/html,x":                               "has a scheme that anybody could use",
		"myapp://cb":                                     "has a scheme that anybody could use",
		"https://a.example\\@b.example/cb":               "is not an address",
		"https://a.example/c b":                          "is not an address",
		"https://a.example/\r\nSet-Cookie:x":             "is not an address",
		"https://ä.example/cb":                           "is not an address",
		"https://a.example/" + strings.Repeat("a", 2000): "is not an address",
	} {
		if got := RedirectFault(address); got != fault {
			t.Errorf("%.60q: %q, want %q", address, got, fault)
		}
	}
}

func TestWhereAnswersMayGo(t *testing.T) {
	t.Parallel()
	registered := []string{"https://a.example/cb", "http://127.0.0.1/cb", "http://[::1]:9/cb?x=1", "http://localhost:3000/cb"}
	for asked, want := range map[string]bool{
		"https://a.example/cb":        true,
		"http://127.0.0.1/cb":         true,
		"http://127.0.0.1:1/cb":       true,
		"http://127.0.0.1:65535/cb":   true,
		"http://[::1]:8080/cb?x=1":    true,
		"http://[::1]/cb?x=1":         true,
		"http://localhost:3000/cb":    true,
		"https://a.example/cb/":       false,
		"https://a.example/cb?x":      false,
		"https://a.example/CB":        false,
		"https://A.example/cb":        false,
		"https://a.example:443/cb":    false,
		"https://a.example/x/../cb":   false,
		"https://a.example/%63b":      false,
		"https://evila.example/cb":    false,
		"https://a.example.evil/cb":   false,
		"https://a.example@evil/cb":   false,
		"http://a.example/cb":         false,
		"https://127.0.0.1:1/cb":      false,
		"http://127.0.0.1:65536/cb":   false,
		"http://127.0.0.1:/cb":        false,
		"http://127.0.0.1:1/cb/":      false,
		"http://127.0.0.1:1/cb#x":     false,
		"http://127.0.0.1:80@evil/cb": false,
		"http://127.0.0.1.evil/cb":    false,
		"http://127.0.0.1@evil/cb":    false,
		"http://127.0.0.2/cb":         false,
		"http://[::1]:8080/cb?x=2":    false,
		"http://localhost:3001/cb":    false,
		"http://localhost/cb":         false,
		"":                            false,
	} {
		if got := RedirectMatches(registered, asked); got != want {
			t.Errorf("%q: %v", asked, got)
		}
	}
}

func TestWithQuery(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://a.example/cb":     "https://a.example/cb?code=a+%26b&iss=c",
		"https://a.example/cb?x=1": "https://a.example/cb?x=1&code=a+%26b&iss=c",
		"com.example:/cb":          "com.example:/cb?code=a+%26b&iss=c",
	} {
		if got := WithQuery(address, [2]string{"code", "a &b"}, [2]string{"state", ""}, [2]string{"iss", "c"}); got != want {
			t.Error(got)
		}
	}
}

// The example of RFC 7636 appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestVerifiers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		challenge, verifier string
		want                bool
	}{
		{challenge, verifier, true},
		{"", "", true},
		{challenge, "", false},
		{"", verifier, false},
		{challenge, challenge, false},
		{verifier, verifier, false}, // the method plain
		{challenge, verifier + "=", false},
		{challenge, verifier[:42], false},
		{challenge, strings.Repeat("a", 129), false},
	} {
		if VerifierFits(c.challenge, c.verifier) != c.want {
			t.Errorf("%q %q", c.challenge, c.verifier)
		}
	}
}

var client = Client{RedirectURIs: []string{"https://a.example/cb"}, Scopes: []string{"streams:*", "users:read"}}

func ask(t *testing.T, c Client, query string) (Request, string) {
	t.Helper()
	f, bad := ParseForm(query)
	if bad == nil {
		_, _, bad = Redirect(f, c)
	}
	if bad != nil {
		return Request{}, "to the person: " + bad.Code
	}
	q, bad := Authorize(f, c)
	if bad != nil {
		return q, bad.Code
	}
	return q, ""
}

func TestAuthorizationRequests(t *testing.T) {
	t.Parallel()
	const pkce = "&code_challenge_method=S256&code_challenge=" + challenge
	public := Client{true, []string{"https://a.example/cb", "https://b.example/cb"}, client.Scopes}
	for _, c := range []struct {
		client      Client
		query, want string
	}{
		{client, "response_type=code", ""},
		{client, "response_type=code&scope=streams:read&state=x&redirect_uri=https://a.example/cb&unknown=1", ""},
		{client, "response_type=code&scope=streams:read+streams:write&response_mode=query" + pkce, ""},
		{client, "response_type=code&redirect_uri=", ""},
		{public, "response_type=code&redirect_uri=https://b.example/cb" + pkce, ""},
		{client, "redirect_uri=https://evil.example/cb", "to the person: invalid_request"},
		{client, "redirect_uri=https://a.example/cb&redirect_uri=https://a.example/cb", "to the person: invalid_request"},
		{client, "client_id=a&client_id=b", "to the person: invalid_request"},
		{public, "response_type=code" + pkce, "to the person: invalid_request"},
		{client, "%zz", "to the person: invalid_request"},
		{client, "state=%00", "to the person: invalid_request"},
		{client, strings.Repeat("a", MaxForm+1), "to the person: invalid_request"},
		{client, "", "invalid_request"},
		{client, "response_type=token", "unsupported_response_type"},
		{client, "response_type=code&response_type=code", "invalid_request"},
		{client, "response_type=code&scope=a&scope=b", "invalid_request"},
		{client, "response_type=code&state=%0d%0a", "invalid_request"},
		{client, "response_type=code&state=" + strings.Repeat("a", maxState+1), "invalid_request"},
		{client, "response_type=code&response_mode=fragment", "invalid_request"},
		{client, "response_type=code&request=x", "invalid_request"},
		{client, "response_type=code&scope=billing:read", "invalid_scope"},
		{client, "response_type=code&scope=*", "invalid_scope"},
		{client, "response_type=code&scope=users:*", "invalid_scope"},
		{client, "response_type=code&scope=no+scope", "invalid_scope"},
		{client, "response_type=code&scope=" + strings.Repeat("streams:read+", maxScopes+1), "invalid_scope"},
		{client, "response_type=code&code_challenge=" + challenge, "invalid_request"},
		{client, "response_type=code&code_challenge_method=plain&code_challenge=" + challenge, "invalid_request"},
		{client, "response_type=code&code_challenge_method=S256", "invalid_request"},
		{client, "response_type=code&code_challenge_method=S256&code_challenge=short", "invalid_request"},
		{public, "response_type=code&redirect_uri=https://a.example/cb", "invalid_request"},
	} {
		if q, got := ask(t, c.client, c.query); got != c.want || got == "" && (q.Redirect == "" || len(q.Scopes) == 0) {
			t.Errorf("%.90s: %q, want %q (%+v)", c.query, got, c.want, q)
		}
	}
	if q, _ := ask(t, client, "response_type=code&state=x"); !slices.Equal(q.Scopes, client.Scopes) || q.State != "x" || q.Named {
		t.Errorf("%+v", q)
	}
	if q, _ := ask(t, client, "response_type=code&redirect_uri=https://a.example/cb&scope=users:read+streams:read+users:read"); !q.Named ||
		!slices.Equal(q.Scopes, []string{"streams:read", "users:read"}) {
		t.Errorf("%+v", q)
	}
}

func TestScopesOnlyNarrow(t *testing.T) {
	t.Parallel()
	held := []string{"streams:*", "users:read"}
	for text, want := range map[string]string{
		"":                        "streams:* users:read",
		"streams:*":               "streams:*",
		"streams:read users:read": "streams:read users:read",
		"users:write":             "invalid_scope",
		"streams:read users:*":    "invalid_scope",
		"*":                       "invalid_scope",
		"???":                     "invalid_scope",
	} {
		list, bad := Narrow(held, text)
		got := strings.Join(list, " ")
		if bad != nil {
			got = bad.Code
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct{ header, form, id, secret, bad string }{
		{"", "client_id=a", "a", "", ""},
		{"", "client_id=a&client_secret=b", "a", "b", ""},
		{basic("a:b"), "", "a", "b", ""},
		{basic("a:b"), "client_id=a", "a", "b", ""},
		{basic("a%3A:b%2B+"), "", "a:", "b+ ", ""},
		{"bAsIc " + base64.StdEncoding.EncodeToString([]byte("a:b:c")), "", "a", "b:c", ""},
		{"", "", "", "", "invalid_client"},
		{basic("a"), "", "", "", "invalid_client"},
		{basic("a:"), "", "", "", "invalid_client"},
		{basic(":b"), "", "", "", "invalid_client"},
		{basic("a:%zz"), "", "", "", "invalid_client"},
		{"Basic ?", "", "", "", "invalid_client"},
		{"Bearer a", "client_id=a", "", "", "invalid_client"},
		{basic("a:b"), "client_secret=b", "", "", "invalid_request"},
		{basic("a:b"), "client_id=c", "", "", "invalid_request"},
	} {
		f, _ := ParseForm(c.form)
		got, bad := ClientCredentials(c.header, f)
		if bad != nil && bad.Code != c.bad || bad == nil && (c.bad != "" || got.ID != c.id || got.Secret != c.secret) {
			t.Errorf("%q %q: %+v %v", c.header, c.form, got, bad)
		}
	}
}

func FuzzAuthorize(f *testing.F) {
	f.Add("response_type=code&scope=streams:read&state=x&redirect_uri=https://a.example/cb")
	f.Add("response_type=code&code_challenge_method=S256&code_challenge=" + challenge)
	f.Add("redirect_uri=http://127.0.0.1:80/cb&redirect_uri=x&state=%0a")
	f.Fuzz(func(t *testing.T, query string) {
		growth.Linear(t, len(query), 64, 16<<10, func() {
			if f, bad := ParseForm(query); bad == nil {
				_, _ = Authorize(f, client)
			}
		})
		q, refusal := ask(t, client, query)
		if refusal != "" {
			return
		}
		if q.Redirect != client.RedirectURIs[0] {
			t.Fatalf("an answer goes to %q", q.Redirect)
		}
		if _, all := Within(client.Scopes, q.Scopes); !all || len(q.Scopes) == 0 {
			t.Fatalf("scopes %v", q.Scopes)
		}
		u, err := url.Parse(WithQuery(q.Redirect, [2]string{"state", q.State}))
		if err != nil || u.Host != "a.example" || u.Query().Get("state") != q.State {
			t.Fatalf("%v %v", u, err)
		}
	})
}

func FuzzRedirectMatches(f *testing.F) {
	f.Add("http://127.0.0.1:8080/cb")
	f.Add("http://127.0.0.1:80@evil/cb")
	f.Add("http://[::1]/cb")
	f.Fuzz(func(t *testing.T, asked string) {
		growth.Linear(t, len(asked), 64, 8<<10, func() { RedirectMatches([]string{"http://127.0.0.1/cb"}, asked) })
		if !RedirectMatches([]string{"http://127.0.0.1/cb"}, asked) {
			return
		}
		u, err := url.Parse(asked)
		if err != nil || u.Hostname() != "127.0.0.1" || u.Path != "/cb" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q matches", asked)
		}
	})
}

func FuzzClientCredentials(f *testing.F) {
	f.Add("Basic YTpi", "client_id=a")
	f.Add("", "client_id=a&client_secret=b")
	f.Fuzz(func(t *testing.T, header, form string) {
		growth.Linear(t, len(header)+len(form), 64, 8<<10, func() {
			p, _ := ParseForm(form)
			_, _ = ClientCredentials(header, p)
		})
		p, _ := ParseForm(form)
		c, bad := ClientCredentials(header, p)
		if bad == nil && (c.ID == "" || c.Header && c.Secret == "") {
			t.Fatalf("%+v", c)
		}
	})
}

func FuzzNarrow(f *testing.F) {
	f.Add("streams:read users:read")
	f.Add("streams:* *")
	f.Add("\tstreams:read  streams:read")
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 64, 8<<10, func() { _, _ = Narrow(client.Scopes, text) })
		list, bad := Narrow(client.Scopes, text)
		if bad != nil {
			return
		}
		if kept, all := Within(client.Scopes, list); !all || len(kept) == 0 || !slices.IsSorted(list) {
			t.Fatalf("%q became %v", text, list)
		}
	})
}

func FuzzRedirectFault(f *testing.F) {
	f.Add("https://a.example/cb?x=1")
	f.Add("com.example:/cb")
	f.Add("http://[::1]:8/#")
	f.Fuzz(func(t *testing.T, address string) {
		growth.Linear(t, len(address), 64, 8<<10, func() { RedirectFault(address) })
		if RedirectFault(address) != "" {
			return
		}
		before, err := url.Parse(address)
		if err != nil || before.User != nil || before.Fragment != "" {
			t.Fatalf("%q is taken", address)
		}
		after, err := url.Parse(WithQuery(address, [2]string{"code", "c&d#e"}))
		if err != nil || after.Host != before.Host || after.Scheme != before.Scheme || after.Path != before.Path || after.Query().Get("code") == "" {
			t.Fatalf("%q leads to %v: %v", address, after, err)
		}
	})
}
