package identityheader

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

// A value is for one product: another takes it neither as its own nor, without the
// platform's secret, as anything.
func TestValuesNameTheirProduct(t *testing.T) {
	t.Parallel()
	media, shop := ProductSecret(secret, "media"), ProductSecret(secret, "shop")
	good := SignFor(media, "media", caller, 1000)
	if got, err := VerifyFor([][]byte{[]byte("another"), media}, "media", good, 1000); err != nil || got.Account != caller.Account || !slices.Equal(got.Scopes, caller.Scopes) {
		t.Fatalf("%+v %v", got, err)
	}
	if Product(good) != "media" || Product(Sign(secret, caller, 1000)) != "" || Product("v2;u=media") != "" {
		t.Error("the product is not told from the value")
	}
	for name, c := range map[string]struct {
		secret  []byte
		product string
		value   string
		want    error
	}{
		"at another product":              {shop, "shop", good, ErrSignature},
		"by another product's thief":      {media, "media", SignFor(shop, "media", caller, 1000), ErrSignature},
		"of the same secret, other name":  {media, "media", SignFor(media, "shop", caller, 1000), ErrMalformed},
		"renamed":                         {media, "media", strings.Replace(SignFor(media, "shop", caller, 1000), "u=shop", "u=media", 1), ErrSignature},
		"the first form, by the product":  {media, "media", Sign(media, caller, 1000), ErrMalformed},
		"the first form, by the platform": {media, "media", Sign(secret, caller, 1000), ErrSignature},
		"a voucher":                       {media, "media", SignOwnVoucher(media, Voucher{"192.0.2.7", "key_1"}, 1000), ErrMalformed},
		"ended":                           {media, "media", SignFor(media, "media", caller, 1000-Lifetime-Leeway), ErrExpired},
		"of no platform":                  {ProductSecret(nil, "media"), "media", SignFor(nil, "media", caller, 1000), ErrSignature},
	} {
		if _, err := VerifyFor([][]byte{c.secret}, c.product, c.value, 1000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Verify([][]byte{secret, media}, good, 1000); err == nil {
		t.Error("a value for one product passes for one of the first form")
	}
}

// Without the secret nothing but the signed value itself may pass.
func FuzzVerify(f *testing.F) {
	good := Sign(secret, caller, 1000)
	goodFor := SignFor(secret, "media", caller, 1000)
	f.Add(good)
	f.Add(goodFor)
	f.Add("v1;a=;k=;p=;s=;e=;m=")
	f.Fuzz(func(t *testing.T, v string) {
		if c, err := Verify([][]byte{secret}, v, 1000); err == nil && !strings.EqualFold(v, good) {
			t.Fatalf("accepted %q as %+v", v, c)
		}
		if c, err := VerifyFor([][]byte{secret}, Product(v), v, 1000); err == nil && !strings.EqualFold(v, goodFor) {
			t.Fatalf("accepted %q as %+v", v, c)
		}
	})
}
