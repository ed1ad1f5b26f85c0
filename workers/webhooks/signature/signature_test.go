package signature

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

var at = time.Unix(1614265330, 0)

// The vector of the Standard Webhooks specification and its libraries.
func TestStandardVector(t *testing.T) {
	t.Parallel()
	secret := []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	got := Standard(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

// RFC 4231, test case 2.
func TestBodyVector(t *testing.T) {
	t.Parallel()
	got := Body([]byte("Jefe"), []byte("what do ya want for nothing?"))
	if want := "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

func TestStandardKey(t *testing.T) {
	t.Parallel()
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("sixteen bytes ok"))
	for secret, want := range map[string]string{
		"plain text":     "plain text",
		encoded:          "sixteen bytes ok",
		"whsec_not*b64":  "whsec_not*b64",
		"whsec_":         "whsec_",
		"WHSEC_c2l4dGVu": "WHSEC_c2l4dGVu",
	} {
		if got := string(StandardKey([]byte(secret))); got != want {
			t.Errorf("%q: %q, want %q", secret, got, want)
		}
	}
}

func signed(secrets ...string) http.Header {
	h, raw := http.Header{}, make([][]byte, len(secrets))
	for i, s := range secrets {
		raw[i] = []byte(s)
	}
	Set(h, raw, "evt_1", at, []byte("body"))
	return h
}

func TestVerify(t *testing.T) {
	t.Parallel()
	change := func(name, value string) http.Header {
		h := signed("present")
		h.Set(name, value)
		return h
	}
	for name, c := range map[string]struct {
		h    http.Header
		body string
		now  time.Time
		ok   bool
	}{
		"as sent":                {signed("present"), "body", at, true},
		"within the tolerance":   {signed("present"), "body", at.Add(Tolerance), true},
		"two secrets, new first": {signed("present", "former"), "body", at, true},
		"two secrets, old first": {signed("former", "present"), "body", at, true},
		"another secret":         {signed("wrong"), "body", at, false},
		"another body":           {signed("present"), "Body", at, false},
		"another id":             {change(StandardID, "evt_2"), "body", at, false},
		"replayed later":         {signed("present"), "body", at.Add(Tolerance + time.Second), false},
		"from the future":        {signed("present"), "body", at.Add(-Tolerance - time.Second), false},
		"a moved timestamp":      {change(StandardTimestamp, "1614265331"), "body", at, false},
		"no timestamp":           {change(StandardTimestamp, ""), "body", at, false},
		"no signature":           {change(StandardSignature, ""), "body", at, false},
	} {
		err := Verify([]byte("present"), c.h, []byte(c.body), c.now)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && apierror.Code(err) != decision.Webhook002 {
			t.Errorf("%s: code %s, want WEBHOOK_002", name, apierror.Code(err))
		}
	}
}

func TestVerifyBodyDuringARotation(t *testing.T) {
	t.Parallel()
	h := signed("present", "former")
	values := []string{h.Get(Header), h.Get(HeaderPrevious)}
	for _, secret := range []string{"present", "former"} {
		if err := VerifyBody([]byte(secret), values, []byte("body")); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if err := VerifyBody([]byte("present"), h.Values(Header), []byte("body")); err != nil {
		t.Errorf("the spec's header is not the present secret's: %v", err)
	}
	for _, bad := range [][]string{nil, {""}, {strings.ToUpper(values[0])}} {
		if err := VerifyBody([]byte("present"), bad, []byte("body")); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzVerify(f *testing.F) {
	h := signed("present")
	f.Add(h.Get(StandardID), h.Get(StandardTimestamp), h.Get(StandardSignature), []byte("body"))
	f.Add("", "-1", "v1, v1,=", []byte(nil))
	f.Fuzz(func(t *testing.T, id, stamp, sig string, body []byte) {
		h := http.Header{}
		h.Set(StandardID, id)
		h.Set(StandardTimestamp, stamp)
		h.Set(StandardSignature, sig)
		if err := Verify([]byte("another"), h, body, at); err == nil {
			t.Error("accepted without knowing the secret")
		}
	})
}
