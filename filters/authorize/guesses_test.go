package authorize

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// guess uses up what the address of e may guess at tokens.
func (e *edge) guess(t *testing.T) {
	t.Helper()
	p := newPolicy(t)
	for i := range p.Anonymous {
		e.header = "Bearer " + session(fmt.Sprint("guess_", i), "*", "forged", now+100)
		if v := Check(p, "streams.get", e, now); v.Code != decision.InvalidToken {
			t.Fatalf("guess %d: %q", i, v.Code)
		}
	}
}

// ask sends a request with a token at a time.
func (e *edge) ask(t *testing.T, route, text string, at int64) Verdict {
	t.Helper()
	e.header = "Bearer " + text
	return Check(newPolicy(t), route, e, at)
}

// Who has guessed too often pays with 429, and the edge with nothing: no token
// is taken apart, whatever it is.
func TestTokensOverTheLimitAreNotTakenApart(t *testing.T) {
	t.Parallel()
	e := newTokenEdge(nil)
	e.guess(t)
	before := e.verified
	blank := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"k1","typ":"at+jwt"}` + strings.Repeat(" ", 3000)))
	for name, text := range map[string]string{
		"forged":          session("sess_1", "*", "forged", now+100),
		"good, and new":   session("sess_1", "*", "good", now+100),
		"8 KB of blanks":  blank + "." + blank + ".AAAA",
		"no token at all": "a.b.c",
	} {
		for _, route := range []string{"streams.get", "keys"} { // a session's route would pass it on
			v := e.ask(t, route, text, now)
			if v.Code != decision.RateLimited || v.RetryAfter != 60 || v.Rate.Policy != addressPolicy || v.Rate.Limit != 3 || v.Route == nil || v.Known {
				t.Errorf("%s, %s: %+v", name, route, v)
			}
		}
	}
	if e.verified != before {
		t.Errorf("%d signatures were checked", e.verified-before)
	}
	if v := e.ask(t, "streams.get", session("sess_1", "streams:read", "good", now+100), now+60); !v.OK() {
		t.Errorf("a minute later: %+v", v)
	}
}

// Somebody else who guesses from the same address keeps nobody out who was in.
func TestGuessesOfOthersKeepNoProvenCallerOut(t *testing.T) {
	t.Parallel()
	e := newTokenEdge(nil)
	proven := session("sess_1", "streams:read", "good", now+1000)
	if v := e.ask(t, "streams.get", proven, now-31); !v.OK() { // it must be checked again by now
		t.Fatalf("%+v", v)
	}
	e.guess(t)
	before := e.verified
	if v := e.ask(t, "streams.get", proven, now); !v.OK() || e.verified != before+1 {
		t.Errorf("a token that was good: %+v", v)
	}
	if v := e.ask(t, "streams.get", e.key(1, nil, bitRead), now); !v.OK() {
		t.Errorf("a key: %+v", v)
	}
	e.address = "192.0.2.2:5"
	if v := e.ask(t, "streams.get", session("sess_2", "streams:read", "good", now+100), now); !v.Known {
		t.Errorf("a new token from elsewhere: %+v", v)
	}
}

// A token that was good once is no ticket to have the edge check signatures.
func TestATokenThatHasEndedIsAGuess(t *testing.T) {
	t.Parallel()
	e := newTokenEdge(nil)
	ended := session("sess_1", "streams:read", "good", now)
	if v := e.ask(t, "streams.get", ended, now-1); !v.OK() {
		t.Fatalf("%+v", v)
	}
	for range 20 {
		e.ask(t, "streams.get", ended, now)
	}
	if e.verified != 1+3 {
		t.Errorf("%d signatures were checked, want one and 3 of the 20 guesses", e.verified)
	}
}

// What fills an address's own window, many people behind it or one who asks for
// public things without end, has nothing to do with tokens.
func TestAFullAddressKeepsNoTokenOut(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	for range 2 * p.Anonymous {
		Check(p, "health", e, now)
	}
	e.header = "Bearer slk_guess"
	if v := Check(p, "any", e, now); v.Code != decision.RateLimited {
		t.Fatalf("the address is not over its limit: %+v", v)
	}
	if v := e.ask(t, "streams.get", session("sess_1", "streams:read", "good", now+100), now); !v.OK() {
		t.Errorf("a new token: %+v", v)
	}
}

// Good credentials are not counted for their address, and neither is a token of
// which the edge cannot know yet.
func TestGoodTokensAreNoGuesses(t *testing.T) {
	t.Parallel()
	e := newTokenEdge(nil)
	for i := range 10 {
		e.ask(t, "streams.get", session(fmt.Sprint("sess_", i), "streams:read", "good", now+100), now)
		e.ask(t, "voice", e.key(1, nil), now)
	}
	e.ready = false
	e.tokens = newTokenEdge(nil).tokens
	e.ask(t, "streams.get", session("sess_1", "streams:read", "good", now+100), now)
	for id := range e.windows {
		if id == ratelimit.GuessID(e.address) {
			t.Error("a good token, or one that cannot be judged, counts as a guess")
		}
	}
	e.ready = true
	e.ask(t, "streams.get", session("sess_1", "*", "forged", now+100), now)
	if w := e.windows[ratelimit.GuessID(e.address)]; w == nil || w.Total() != 1 {
		t.Error("a forged token does not count")
	}
}

// An IPv6 client has a /64: it guesses, and asks without a credential, as one
// address does, while its account's allowlist sees all of it.
func TestOneIPv6NetworkIsOneClient(t *testing.T) {
	t.Parallel()
	p, e := newPolicy(t), newTokenEdge(nil)
	for i := range 2 * p.Anonymous {
		e.address = fmt.Sprintf("[2001:db8::%x]:5", i+1)
		want := decision.Code("")
		if i >= p.Anonymous {
			want = decision.RateLimited
		}
		if v := Check(p, "health", e, now); v.Code != want {
			t.Fatalf("request %d: %q", i, v.Code)
		}
	}
	for i := range p.Anonymous + 1 {
		e.address = fmt.Sprintf("[2001:db8:1::%x]:5", i+1)
		e.ask(t, "streams.get", session("sess_1", "*", "forged", now+100), now)
	}
	if e.verified != int(p.Anonymous) {
		t.Errorf("%d signatures of guesses from one network were checked", e.verified)
	}
	e.address = "[2001:db8:2::1]:5"
	if v := Check(p, "health", e, now); !v.OK() {
		t.Errorf("another network: %+v", v)
	}
	for _, a := range []string{"192.0.2.77:1", "[::ffff:192.0.2.77]:1", "192.0.2.77:2", "[::ffff:192.0.2.77]:3"} {
		e.address = a
		if v := Check(p, "health", e, now); v.OK() != (a != "[::ffff:192.0.2.77]:3") {
			t.Errorf("%s: %+v", a, v)
		}
	}
}
