package digest_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	icholy "github.com/icholy/digest"
	"sluice.dev/sluice/media/phone/digest"
	"sluice.dev/sluice/platform/limits/growth"
)

var (
	at   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	home = netip.MustParseAddr("192.0.2.1")
)

// answers has a public client answer a challenge.
func answers(t *testing.T, challenge, user, password string) digest.Answer {
	t.Helper()
	asked, err := icholy.ParseChallenge(challenge)
	if err != nil {
		t.Fatal(err)
	}
	said, err := icholy.Digest(asked, icholy.Options{Method: "INVITE", URI: "sip:line@sip.example", Username: user, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := digest.Read(said.String())
	if !ok || a.User != user || a.URI != "sip:line@sip.example" || a.Count != 1 {
		t.Fatalf("%+v of %s", a, said)
	}
	return a
}

func TestOnlyThePasswordIsRight(t *testing.T) {
	t.Parallel()
	key, secret := digest.NewKey(), digest.SecretOf("line", "password")
	if again, ok := digest.ReadSecret(secret[:]); !ok || again != secret {
		t.Error("a secret does not read back")
	}
	if _, ok := digest.ReadSecret(nil); ok {
		t.Error("nothing is a secret")
	}
	for _, challenge := range []string{key.Challenge(home, at, false)} {
		right := answers(t, challenge, "line", "password")
		cases := map[string]struct {
			answer digest.Answer
			method string
			from   netip.Addr
			later  time.Duration
			want   digest.Verdict
		}{
			"right":           {right, "INVITE", home, 0, digest.Right},
			"within a minute": {right, "INVITE", home, 59 * time.Second, digest.Right},
			"too late":        {right, "INVITE", home, 61 * time.Second, digest.Stale},
			"from elsewhere":  {right, "INVITE", netip.MustParseAddr("192.0.2.2"), 0, digest.Stale},
			"another method":  {right, "REGISTER", home, 0, digest.Wrong},
			"wrong":           {answers(t, challenge, "line", "passwort"), "INVITE", home, 0, digest.Wrong},
			"wrong elsewhere": {answers(t, challenge, "line", "passwort"), "INVITE", netip.MustParseAddr("192.0.2.2"), 0, digest.Stale},
			"another user":    {answers(t, challenge, "eve", "password"), "INVITE", home, 0, digest.Wrong},
		}
		for name, c := range cases {
			if got := key.Check(c.answer, secret, c.method, c.from, at.Add(c.later)); got != c.want {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		if got := digest.NewKey().Check(right, secret, "INVITE", home, at); got != digest.Stale {
			t.Errorf("to the challenge of another process: %v", got)
		}
	}
	if stale := key.Challenge(home, at, true); !strings.Contains(stale, "stale=true") {
		t.Error(stale)
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	good := `Digest username="u", realm="sluice", nonce="n", uri="sip:a", response="r", cnonce="c", nc=00000001, qop=auth`
	if _, ok := digest.Read(good); !ok {
		t.Fatal("a good one is refused")
	}
	for _, text := range []string{"", "Basic dTpw", strings.Replace(good, "sluice", "other", 1), strings.Replace(good, "qop=auth", "qop=auth-int", 1),
		strings.Replace(good, `cnonce="c"`, `cnonce=""`, 1), strings.Replace(good, "nc=00000001", "nc=00000000", 1), good + strings.Repeat(" ", 1024)} {
		if _, ok := digest.Read(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}

// Whatever is sent, nothing but the password is right.
func FuzzRead(f *testing.F) {
	f.Add(`Digest username="u", realm="sluice", nonce="n", uri="sip:a", response="r", cnonce="c", nc=00000001, qop=auth, algorithm=MD5`)
	key, secret := digest.NewKey(), digest.SecretOf("line", "a password that nobody has")
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), 64, 16<<10, func() { digest.Read(text) })
		if a, ok := digest.Read(text); ok && key.Check(a, secret, "INVITE", home, at) == digest.Right {
			t.Fatalf("%q is right", text)
		}
	})
}
