package clientcert

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/limits/growth"
)

var sum = strings.Repeat("ab", 32)

// text is what Envoy writes of a certificate.
func text(uri, dns, email, subject string) string {
	return strings.Join([]string{sum, "0b3e6d", "1796229764", uri, dns, email, "CN=Test CA", subject}, "|")
}

func TestWhatACertificateIsKnownBy(t *testing.T) {
	t.Parallel()
	type names map[Kind]string
	cases := map[string]struct {
		text string
		want names
	}{
		"everything":                 {text("spiffe://acme/laptop", "A.example", "x@y.z", "CN=seven,O=Acme"), names{URI: "spiffe://acme/laptop", DNS: "a.example", Email: "x@y.z", CN: "seven"}},
		"nothing":                    {text("", "", "", "O=Acme"), nil},
		"two names look like a list": {text("spiffe://a,spiffe://b", "a.example,b.example", "a@b,c@d", "CN=a,CN=b"), nil},
		"a common name in another":   {text("", "", "", `O=x\,CN=admin,CN=me`), names{CN: "me"}},
		"behind a backslash":         {text("", "", "", `O=x\\,CN=me`), names{CN: "me"}},
		"behind a plus":              {text("", "", "", "OU=a+CN=me"), names{CN: "me"}},
		"escaped":                    {text("", "", "", `CN=a\,b`), nil},
		"dumped":                     {text("", "", "", "CN=#0401"), nil},
		"ends in a backslash":        {text("", "", "", `CN=a\`), nil},
		"too long":                   {text("spiffe://"+strings.Repeat("a", MaxName), "", "", "O=Acme"), nil},
		"not ASCII":                  {text("spiffe://\xff", "", "", "O=Acme"), nil},
	}
	for name, c := range cases {
		got, ok := new(Memo).Read(c.text)
		want := []keytable.Tag{keytable.TagOfKey(Hash(SHA256, sum))}
		for _, k := range Kinds() {
			if c.want[k] != "" {
				want = append(want, keytable.TagOfKey(Hash(k, c.want[k])))
			}
		}
		if !ok || !got.Present || got.Expires != 1796229764 || !slices.Equal(got.Names, want) {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
}

func TestWhatIsNoCertificate(t *testing.T) {
	t.Parallel()
	if c, ok := new(Memo).Read(absent); !ok || c.Present {
		t.Error("a connection without one:", c, ok)
	}
	good := text("spiffe://acme/laptop", "", "", "O=Acme")
	for name, bad := range map[string]string{
		"nothing": "", "too few fields": good[:strings.LastIndexByte(good, '|')], "a separator in a name": text("spiffe://a|b", "", "", "O=Acme"),
		"a separator in the subject": text("", "", "", "O=Acme|x"), "no end": strings.Replace(good, "1796229764", "", 1), "no serial": strings.Replace(good, "0b3e6d", "", 1),
		"no fingerprint": good[64:], "too long": text("", strings.Repeat("a", maxText), "", ""),
	} {
		if c, ok := new(Memo).Read(bad); ok || c.Present {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// What is remembered of one certificate is never said of another.
func TestAMemoSaysWhatItWouldRead(t *testing.T) {
	t.Parallel()
	var m Memo
	for range 3 {
		for i := range 500 {
			s := strings.Replace(text("spiffe://acme/"+strings.Repeat("x", i%100), "", "", "O=Acme"), "ab", string("0123456789abcdef"[i%16])+"b", 1)
			got, _ := m.Read(s)
			want, _ := new(Memo).Read(s)
			if !slices.Equal(got.Names, want.Names) || got.Revoked != want.Revoked {
				t.Fatal(s)
			}
		}
	}
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	c, _ := new(Memo).Read(text("", "", "", "O=Acme"))
	if c.Revoked != TagOfRevoked("000B3E6D") || c.Revoked == TagOfRevoked("b3e6d0") {
		t.Error("a serial number is written in more than one way")
	}
	for name, want := range map[string]struct {
		issuers []string
		revoked bool
	}{
		"its issuer": {[]string{"CN=Test CA"}, true}, "another": {[]string{"CN=Other"}, false}, "several": {[]string{"CN=Other", "CN=Test CA"}, true},
		"any": {nil, true}, "any among others": {[]string{"CN=Other", ""}, true}, "too many": {[]string{"1", "2", "3", "4", "5"}, true},
	} {
		r, _ := keytable.Decode(Revoked("b3e6d", want.issuers).Append(nil))
		if r.Tag != c.Revoked || c.IsRevoked(&r) != want.revoked {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if key := (keytable.Record{Kind: keytable.KindKey, ID: 1}); !c.IsRevoked(&key) {
		t.Error("a record that should not be there lets a certificate in")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(text("spiffe://acme/laptop", "a.example", "x@y.z", `O=x\,CN=admin,CN=me`))
	f.Add(absent)
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 24, 64<<10, func() { new(Memo).Read(s) })
		c, ok := new(Memo).Read(s)
		if ok != (s == absent) && !c.Present || c.Present && (strings.Count(s, "|") != fields-1 || len(c.Names) > len(Kinds())) {
			t.Fatalf("%q: %+v %v", s, c, ok)
		}
	})
}
