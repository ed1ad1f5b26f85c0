package price

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestAmounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "0.0005": "0.0005", "29.00": "29", "1000000": "1000000", "0.000000001": "0.000000001", "1.10": "1.1",
		"": "!", "-1": "!", "1.": "!", ".5": "!", "1e3": "!", "01": "!", "1000000.000000001": "!", "1000001": "!", "0.0000000001": "!", "1,5": "!", "9999999.999999999": "!",
	} {
		a, err := ParseAmount(text)
		if err != nil && want != "!" || err == nil && a.String() != want {
			t.Errorf("%q: %s %v, want %s", text, a, err, want)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	f.Add("0.0005")
	f.Add("1000000")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 1, 2048, func() { _, _ = ParseAmount(s) })
		a, err := ParseAmount(s)
		if err != nil {
			return
		}
		again, err := ParseAmount(a.String())
		if err != nil || again != a || a.nanos < 0 {
			t.Fatalf("%q became %s, and %v %v", s, a, again, err)
		}
	})
}

func amount(t *testing.T, s string) Amount {
	t.Helper()
	a, err := ParseAmount(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		price    string
		per      int64
		quantity int64
		currency string
		want     int64
	}{
		{"0.40", 1000, 0, "USD", 0},
		{"0.40", 1000, 1000, "USD", 40},
		{"0.40", 1000, 12, "USD", 0}, // 0.48 cents
		{"0.40", 1000, 13, "USD", 1}, // 0.52 cents
		{"0.005", 1, 1, "USD", 1},    // half a cent, up
		{"0.0005", 1, 9, "USD", 0},   // 0.45 cents
		{"0.0005", 1, 10, "USD", 1},  // half a cent: rounded once, not for each request
		{"2", 1000000, 3500000, "JPY", 7},
		{"2", 1000000, 3500000, "EUR", 700},
	} {
		u := Unit{Amount: amount(t, c.price), Per: c.per}
		if got, ok := u.Cost(c.quantity, c.currency); got != c.want || !ok {
			t.Errorf("%d × %s per %d %s: %d, want %d", c.quantity, c.price, c.per, c.currency, got, c.want)
		}
	}
	if _, ok := (Unit{Amount: amount(t, "1000000"), Per: 1}).Cost(math.MaxInt64, "USD"); ok {
		t.Error("an amount of more than 64 bits is taken for one")
	}
}

// TestCostsAreExact compares with fractions.
func TestCostsAreExact(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	half := big.NewRat(1, 2)
	for range 10_000 {
		u := Unit{Amount: Amount{rng.Int64N(1000 * nano)}, Per: 1 + rng.Int64N(1e9)}
		quantity := rng.Int64N(1e10)
		exact := new(big.Rat).SetFrac(product(quantity, u.Amount.nanos), product(u.Per, nano))
		exact.Mul(exact, big.NewRat(100, 1))
		got, _ := u.Cost(quantity, "USD")
		if off := exact.Sub(exact, new(big.Rat).SetInt64(got)); off.Cmp(half) >= 0 || off.Cmp(new(big.Rat).Neg(half)) < 0 {
			t.Fatalf("%d × %s per %d: %d is off by %s", quantity, u.Amount, u.Per, got, off)
		}
	}
}

func TestPartsOfAMonth(t *testing.T) {
	t.Parallel()
	p := Plan{Monthly: 2900}
	if a, b := p.Fee(Share{30, 30}), p.Fee(Share{10, 30}); a != 2900 || b != 967 {
		t.Error(a, b)
	}
	u := Unit{Included: 100}
	if a, b, c := u.IncludedIn(Share{31, 31}), u.IncludedIn(Share{1, 31}), u.IncludedIn(Share{0, 31}); a != 100 || b != 4 || c != 0 {
		t.Error(a, b, c)
	}
}

func TestCurrencies(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"USD": true, "JPY": true, "KWD": false, "usd": false, "": false, "EURO": false} {
		if Currency(code) != want {
			t.Error(code)
		}
	}
	for text, want := range map[string]bool{"29": true, "29.5": true, "29.99": true, "29.999": false} {
		if _, ok := amount(t, text).Minor("USD"); ok != want {
			t.Error(text)
		}
	}
	if n, ok := amount(t, "29.5").Minor("JPY"); ok {
		t.Error(n)
	}
}
