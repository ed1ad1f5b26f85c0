package identity

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	caller = Caller{Account: "acct_1", Key: "key_1", Plan: "pro", Scopes: []string{"streams:read", "clips:*"}}
)

func TestSignedValueIsAcceptedUntilItEnds(t *testing.T) {
	t.Parallel()
	v := Sign(secret, caller, 1000)
	got, err := Verify([][]byte{[]byte("another secret"), secret}, v, 1000+Lifetime+Leeway-1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Account != caller.Account || got.Key != caller.Key || got.Plan != caller.Plan || !slices.Equal(got.Scopes, caller.Scopes) {
		t.Fatalf("got %+v, want %+v", got, caller)
	}
	if _, err := Verify([][]byte{secret}, v, 1000+Lifetime+Leeway); !errors.Is(err, ErrExpired) {
		t.Fatalf("at its end: %v, want ErrExpired", err)
	}
}

func TestForgedValuesAreRefused(t *testing.T) {
	t.Parallel()
	good := Sign(secret, caller, 1000)
	cases := map[string]struct {
		value string
		want  error
	}{
		"empty":           {"", ErrMalformed},
		"no mac":          {"v1;a=x;k=y;p=z;s=;e=9999", ErrMalformed},
		"short mac":       {"v1;a=x;k=y;p=z;s=;e=9999;m=00", ErrMalformed},
		"other account":   {strings.Replace(good, "acct_1", "acct_2", 1), ErrSignature},
		"more scopes":     {strings.Replace(good, "clips:*", "*", 1), ErrSignature},
		"two values":      {good + "," + good, ErrMalformed},
		"another secret":  {Sign([]byte("another"), caller, 1000), ErrSignature},
		"empty secret":    {Sign(nil, caller, 1000), ErrSignature},
		"another version": {strings.Replace(good, "v1;", "v2;", 1), ErrSignature},
		"oversized":       {good + strings.Repeat("0", maxLen), ErrMalformed},
	}
	for name, c := range cases {
		if _, err := Verify([][]byte{secret, nil}, c.value, 1000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Without the secret nothing but the signed value itself may pass.
func FuzzVerify(f *testing.F) {
	good := Sign(secret, caller, 1000)
	f.Add(good)
	f.Add("v1;a=;k=;p=;s=;e=;m=")
	f.Fuzz(func(t *testing.T, v string) {
		if c, err := Verify([][]byte{secret}, v, 1000); err == nil && !strings.EqualFold(v, good) {
			t.Fatalf("accepted %q as %+v", v, c)
		}
	})
}
