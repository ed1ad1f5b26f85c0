package authorize

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// Who is refused is told what was wrong and what to do: by what the route takes, and by the
// form of what was sent. A key that has the form of one is told nothing, whatever became
// of it, nor is a forged token.
func TestWhatRefusalsSay(t *testing.T) {
	t.Parallel()
	unknown := apikey.FormatKey(99, [apikey.SecretBytes]byte{99})
	const whole, bearer = "the whole text of a key: slk_ and 52 more characters", "Authorization: Bearer <API key>"
	none := decision.Detail{}
	for name, c := range map[string]struct {
		route, header string
		headers       map[string]string
		change        func(*policy.Policy)
		code          decision.Code
		want          decision.Detail
	}{
		"no key":              {route: "any", code: decision.AuthRequired, want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: bearer}},
		"no key or token":     {route: "voice", code: decision.AuthRequired, want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: "Authorization: Bearer <API key or token>"}},
		"no session":          {route: "keys", code: decision.AuthRequired, want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: "Authorization: Bearer <session token>"}},
		"no token":            {route: "any", change: auth(policy.AuthToken), code: decision.AuthRequired, want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: "Authorization: Bearer <access token>"}},
		"no key, in a header": {route: "any", change: keyHeaders, code: decision.AuthRequired, want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: bearer + ", or the API key alone in apikey or x-api-key"}},
		"no token, where keys may be in a header": {route: "any", change: func(p *policy.Policy) { keyHeaders(p); auth(policy.AuthToken)(p) }, code: decision.AuthRequired,
			want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: "Authorization: Bearer <access token>"}},
		"no key or certificate": {route: "any", change: auth(policy.AuthKey | policy.AuthCertificate), code: decision.AuthRequired,
			want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: bearer + ", or a client certificate in the TLS handshake, over HTTP/1.1 or HTTP/2"}},
		"no certificate": {route: "any", change: auth(policy.AuthCertificate), code: decision.AuthRequired,
			want: decision.Detail{Field: "certificate", Issue: "is missing", Expected: "a client certificate in the TLS handshake, over HTTP/1.1 or HTTP/2"}},
		"no key, by WebSocket": {route: "any", change: func(p *policy.Policy) { route(p, "any").Stream = policy.Upgrades }, code: decision.AuthRequired,
			want: decision.Detail{Field: "Authorization", Issue: "is missing", Expected: bearer + ", or the WebSocket protocol sluice.bearer.<API key>"}},
		"Basic":                   {route: "any", header: "Basic YTpi", code: decision.InvalidKey, want: decision.Detail{Field: "Authorization", Issue: "has the scheme Basic, which is not read here", Expected: bearer}},
		"a key too short":         {route: "any", header: "Bearer " + unknown[:50], code: decision.InvalidKey, want: decision.Detail{Field: "key", Issue: "is too short: its end is missing", Expected: whole}},
		"a key mistyped":          {route: "voice", header: "Bearer " + unknown[:30] + "!" + unknown[31:], code: decision.InvalidKey, want: decision.Detail{Field: "key", Issue: "is mistyped: its checksum does not fit", Expected: whole}},
		"a token for a key":       {route: "any", header: "Bearer eyJ.x.y", code: decision.InvalidKey, want: decision.Detail{Field: "key", Issue: "is a token, not an API key", Expected: whole}},
		"an unknown key":          {route: "any", header: "Bearer " + unknown, code: decision.InvalidKey, want: none},
		"a bare key mistyped":     {route: "any", headers: map[string]string{"apikey": "hello"}, change: keyHeaders, code: decision.InvalidKey, want: decision.Detail{Field: "key", Issue: "does not begin with slk_", Expected: whole}},
		"Bearer in a bare header": {route: "any", headers: map[string]string{"apikey": "Bearer " + unknown}, change: keyHeaders, code: decision.InvalidKey, want: decision.Detail{Field: "apikey", Issue: "begins with Bearer", Expected: "the API key alone"}},
		"a bare unknown key":      {route: "any", headers: map[string]string{"apikey": unknown}, change: keyHeaders, code: decision.InvalidKey, want: none},
		"a key for a token": {route: "any", header: "Bearer " + unknown, change: auth(policy.AuthToken), code: decision.InvalidToken,
			want: decision.Detail{Field: "token", Issue: "is an API key, which this route does not take", Expected: "a JSON Web Token: three parts with dots between them"}},
		"no token at all": {route: "any", header: "Bearer hello", change: auth(policy.AuthToken), code: decision.InvalidToken,
			want: decision.Detail{Field: "token", Issue: "has not the form of a token", Expected: "a JSON Web Token: three parts with dots between them"}},
		"a forged token": {route: "any", header: "Bearer " + session("sess_1", "*", "forged", now+100), change: auth(policy.AuthToken), code: decision.InvalidToken, want: none},
	} {
		e, p := newTokenEdge(nil), newPolicy(t)
		e.header, e.headers, e.peer = c.header, c.headers, noCertificate
		if c.change != nil {
			c.change(p)
			if p = policy.Parse(p.Encode()); p == nil {
				t.Fatal(name)
			}
		}
		v := Check(p, c.route, e, now)
		if v.Code != c.code || v.Detail != c.want {
			t.Errorf("%s: %s %+v, want %s %+v", name, v.Code, v.Detail, c.code, c.want)
		}
		for _, secret := range []string{unknown[20:30], "YTpi"} {
			if strings.Contains(v.Detail.Issue+v.Detail.Expected, secret) {
				t.Errorf("%s: a part of what was sent is said: %+v", name, v.Detail)
			}
		}
	}
}

func route(p *policy.Policy, name string) *policy.Route {
	for i := range p.Routes {
		if p.Routes[i].Name == name {
			return &p.Routes[i]
		}
	}
	return nil
}

// auth changes what the route any takes.
func auth(a policy.Auth) func(*policy.Policy) {
	return func(p *policy.Policy) { route(p, "any").Auth = a }
}

func keyHeaders(p *policy.Policy) { p.KeyHeaders = []string{"apikey", "x-api-key"} }

// A text that may be another system's key is told what is wrong with it only if it looks
// like one of ours.
func TestWhatIsSaidOfKeysOfOthers(t *testing.T) {
	t.Parallel()
	e := newEdge()
	e.importKey(foreign, nil)
	for text, want := range map[string]string{foreign + "x": "", "eyJ0123456789abcdef": "", "slk_0123456789abcdef": "is too short: its end is missing"} {
		e.header = "Bearer " + text
		if v := Check(newPolicy(t), "any", e, now); v.Code != decision.InvalidKey || v.Detail.Issue != want {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// Who is refused for a rate is told whose limit it is, how many requests it lets through,
// and when the next one.
func TestWhichLimitWasMet(t *testing.T) {
	t.Parallel()
	e := newTokenEdge(nil)
	ask := func(route string, times int) (v Verdict) {
		for range times {
			v = Check(newPolicy(t), route, e, now)
		}
		return v
	}
	hold := func(v Verdict, want decision.Detail) {
		t.Helper()
		if v.Code != decision.RateLimited || v.RetryAfter != 60 || v.Detail != want {
			t.Errorf("%+v, want %+v", v.Decision, want)
		}
	}
	e.header = "Bearer " + e.key(1, nil, bitRead)
	hold(ask("events.list", 6), decision.Detail{Field: "account", Issue: "may make 5 requests in 60 seconds in the class events", Expected: "another try in 60 seconds"})
	e.header = "Bearer " + e.key(2, func(r *keytable.Record) { r.Limit = 1 }, bitRead)
	hold(ask("events.list", 2), decision.Detail{Field: "key", Issue: "may make 1 request in 60 seconds", Expected: "another try in 60 seconds"})
	e.header = ""
	hold(ask("any", 4), decision.Detail{Field: "address", Issue: "may make 3 requests in 60 seconds without a valid credential", Expected: "a valid credential, or another try in 60 seconds"})
	e.address = "192.0.2.2:5"
	e.guess(t)
	e.header = "Bearer " + session("sess_1", "*", "good", now+100)
	hold(ask("streams.get", 1), decision.Detail{Field: "address", Issue: "may send 3 bad credentials in 60 seconds", Expected: "another try in 60 seconds"})

	p := newPolicy(t)
	p.AddShadows()
	route(p, "any").Class = policy.ShadowClass
	if p = policy.Parse(p.Encode()); p == nil {
		t.Fatal("the policy is not consistent")
	}
	e.header = "Bearer " + e.key(3, nil)
	var v Verdict
	for range 3 {
		v = Check(p, "any", e, now)
	}
	if !v.Shadowed() || v.Code != decision.RateLimited || v.Detail != (decision.Detail{}) {
		t.Errorf("a limit in the shadow: %+v", v)
	}
}

// What is said of refusals costs requests that pass nothing: they allocate what they did
// before anything was said, which is a copy of the caller, and of a session its hash.
func TestWhatARequestAllocates(t *testing.T) {
	p := newPolicy(t)
	p.KeyHeaders = []string{"x-api-key"}
	for i := range p.Plans {
		p.Plans[i].Limits[0].PerMinute = 1 << 20
	}
	p.Anonymous = 1 << 20
	if p = policy.Parse(p.Encode()); p == nil {
		t.Fatal("the policy is not consistent")
	}
	e := newTokenEdge(nil)
	key, unknown := e.key(1, nil, bitRead), apikey.FormatKey(99, [apikey.SecretBytes]byte{99})
	for name, c := range map[string]struct {
		route, header, bare string
		most                float64
	}{
		"a key":                {"streams.list", "Bearer " + key, "", 1},
		"a key in a header":    {"streams.list", "", key, 1},
		"public":               {"health", "", "", 0},
		"optional, without":    {"optional", "", "", 0},
		"a session":            {"keys", "Bearer " + session("sess_1", "*", "good", now+100), "", 3},
		"no scope":             {"streams.list", "Bearer " + e.key(2, nil), "", 1},
		"an unknown key":       {"streams.list", "Bearer " + unknown, "", 3},
		"a mistyped key":       {"streams.list", "Bearer " + unknown[1:], "", 0},
		"Basic":                {"streams.list", "Basic YTpi", "", 0},
		"nothing, two ways in": {"streams.list", "", "", 1},
	} {
		e.header, e.headers = c.header, map[string]string{"x-api-key": c.bare}
		if got := testing.AllocsPerRun(100, func() { Check(p, c.route, e, now) }); got > c.most {
			t.Errorf("%s: %v allocations, %v at most", name, got, c.most)
		}
	}
}
