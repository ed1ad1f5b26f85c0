package signing_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var (
	key = []byte("0123456789abcdef0123456789abcdef")
	now = time.Unix(1_800_000_000, 0)
)

func token(t *testing.T, g signing.Grant) string {
	t.Helper()
	text, err := signing.Sign(key, g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestATokenOpensOneThingForOneUseUntilItEnds(t *testing.T) {
	t.Parallel()
	good := token(t, signing.Grant{Use: signing.Playback, Subject: "play_1", Viewer: "ann", Expires: now.Add(time.Minute)})
	stale := token(t, signing.Grant{Use: signing.Playback, Subject: "play_1", Expires: now})
	const none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJwbGF5XzEiLCJhdWQiOiJwbGF5YmFjayIsImV4cCI6NDAwMDAwMDAwMH0."
	cases := map[string]struct {
		token   string
		use     signing.Use
		subject string
		want    decision.Code
	}{
		"as signed":           {good, signing.Playback, "play_1", ""},
		"another resource":    {good, signing.Playback, "play_2", decision.InvalidToken},
		"another use":         {good, signing.Download, "play_1", decision.InvalidToken},
		"expired":             {stale, signing.Playback, "play_1", decision.TokenExpired},
		"expired, of another": {stale, signing.Playback, "play_2", decision.InvalidToken},
		"changed":             {good[:len(good)-2] + "AA", signing.Playback, "play_1", decision.InvalidToken},
		"not signed":          {none, signing.Playback, "play_1", decision.InvalidToken},
		"none":                {"", signing.Playback, "play_1", decision.InvalidToken},
		"too long":            {strings.Repeat("a", 3000), signing.Playback, "play_1", decision.InvalidToken},
	}
	for name, c := range cases {
		g, err := signing.Verify(key, c.token, c.use, c.subject, now)
		if apierror.Code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && (g.Viewer != "ann" || !g.Expires.Equal(now.Add(time.Minute))) {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if _, err := signing.Verify([]byte("another key"), good, signing.Playback, "play_1", now); apierror.Code(err) != decision.InvalidToken {
		t.Error("another key verifies")
	}
}

func TestAllReplicasHaveTheSameKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	keys := make(chan []byte)
	for range 4 {
		go func() {
			k, err := (&signing.Keys{DB: pool}).Key(t.Context())
			if err != nil {
				t.Error(err)
			}
			keys <- k
		}()
	}
	first := <-keys
	for range 3 {
		if k := <-keys; !bytes.Equal(k, first) || len(k) != 32 {
			t.Error("replicas have different keys")
		}
	}
}

// Whatever the text, it is refused as a token or was signed by us.
func FuzzVerify(f *testing.F) {
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := signing.Verify(key, text, signing.Playback, "play_1", now); err == nil {
			t.Fatal("accepted")
		}
	})
}
