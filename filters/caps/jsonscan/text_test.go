package jsonscan

import (
	"math/big"
	"testing"
)

func TestCutCountsCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw  string
		n    int
		want string
	}{
		{`abc`, 5, `abc`},
		{`abcdef`, 3, `abc`},
		{`éèê`, 2, `éè`},
		{`😀😀`, 1, `😀`},
		{`\ud83d\ude00x`, 1, `\ud83d\ude00`},
		{`a\ud83d\ude00x`, 2, `a\ud83d\ude00`},
		{`\ud83d\ud83d\ude00x`, 2, `\ud83d\ud83d\ude00`},
		{`\n\"\\x`, 3, `\n\"\\`},
		{`\u00e9x`, 1, `\u00e9`},
		{`abc`, 0, ``},
	} {
		if got := c.raw[:Cut([]byte(c.raw), c.n)]; got != c.want {
			t.Errorf("Cut(%s, %d) = %s, want %s", c.raw, c.n, got, c.want)
		}
	}
}

func TestNamesAreComparedDecoded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw         string
		equal, fold bool
	}{
		{`max_tokens`, true, true},
		{`max\u005ftokens`, true, true},
		{`\u006dax_tokens`, true, true},
		{`Max_Tokens`, false, true},
		{`max_to` + "\u212a" + `ens`, false, true},
		{`max_to\u212aens`, false, true},
		{`max_token` + "\u017f", false, true},
		{`max_token`, false, false},
		{`max_tokens_`, false, false},
		{`max-tokens`, false, false},
		{``, false, false},
	} {
		if got := Equal([]byte(c.raw), "max_tokens"); got != c.equal {
			t.Errorf("Equal(%s) = %v", c.raw, got)
		}
		if got := Fold([]byte(c.raw), "max_tokens"); got != c.fold {
			t.Errorf("Fold(%s) = %v", c.raw, got)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	raw := []byte(`a\u003cTag b<tag`)
	at, end, ok := Find(raw, 0, "<tag")
	if !ok || at != 1 || end != 10 {
		t.Errorf("first: %d %d %v", at, end, ok)
	}
	if at, _, ok = Find(raw, end, "<tag"); !ok || at != 12 {
		t.Errorf("second: %d %v", at, ok)
	}
	if _, _, ok = Find(raw, 13, "<tag"); ok {
		t.Error("found a third")
	}
}

var numbers = []string{
	"0", "-0", "1", "10", "4096", "4097", "-1", "1e3", "1E+3", "10e-1", "0.5", "1.50", "15.0", "10.0", "0.0", "0e9", "0.0001e4",
	"1e-1", "2147483647", "2147483648", "-2147483648", "99999999999999999999", "1e400", "-1e400", "1e-400", "1.0000000000000000000000001",
	"4096.000", "40.96e2", "1e999999999999", "100e-2", "120e-2",
}

func FuzzInteger(f *testing.F) {
	for _, n := range numbers {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n string) {
		if len(n) > 100 || Validate([]byte(n), 1) != nil || Root([]byte(n)).Kind([]byte(n)) != Number {
			return
		}
		raw := []byte(n)
		v := Root(raw)
		raw = raw[v.From:v.To]
		got, ok := Integer(raw)
		want, exact := new(big.Rat).SetString(string(raw))
		if !exact {
			return // an exponent beyond what the oracle reads
		}
		if ok != want.IsInt() {
			t.Fatalf("Integer(%s): ok %v", raw, ok)
		}
		if limit := big.NewInt(Ceiling); ok && want.Num().CmpAbs(limit) <= 0 && want.Num().Int64() != int64(got) {
			t.Fatalf("Integer(%s) = %d", raw, got)
		} else if ok && want.Num().CmpAbs(limit) > 0 && got != Ceiling*want.Sign() {
			t.Fatalf("Integer(%s) = %d, want the ceiling", raw, got)
		}
	})
}
