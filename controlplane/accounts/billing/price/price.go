// Package price computes what usage costs, in whole numbers: prices are decimal texts, and
// amounts are of the currency's smallest unit, as providers charge them. It has no effects.
package price

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Metric is something that is metered and may have a price.
type Metric string

// The metrics, as a report of usage has them.
const (
	Requests          Metric = "requests"           // that edges let through
	Tokens            Metric = "tokens"             // of chat completions: prompts and answers
	PromptTokens      Metric = "prompt_tokens"      // of them, those of prompts
	CompletionTokens  Metric = "completion_tokens"  // of them, those of answers
	ConnectionMinutes Metric = "connection_minutes" // for which connections and streams were open, begun ones whole
	BytesOut          Metric = "bytes_out"          // of bodies of answers
	StorageGBDays     Metric = "storage_gb_days"    // 10^9 bytes that the media product stored for a day, begun ones whole
)

// Metrics are all of them, in the order in which an invoice lists them.
var Metrics = []Metric{Requests, Tokens, PromptTokens, CompletionTokens, ConnectionMinutes, BytesOut, StorageGBDays}

// Plan is what a plan costs.
type Plan struct {
	Currency string          // ISO 4217
	Monthly  int64           // fee, in the currency's smallest unit
	Units    map[Metric]Unit // what has a price of its own
}

// Unit is the price of what is metered.
type Unit struct {
	Amount   Amount
	Per      int64 // units that Amount is for, 1 at least
	Included int64 // units of a month that the monthly fee includes
}

// Amount is a decimal number of whole units of a currency, such as 0.0005, that is not negative.
type Amount struct{ nanos int64 }

// nano is how many parts of an Amount make one whole unit.
const nano = 1_000_000_000

// MaxWhole bounds an Amount.
const MaxWhole = 1_000_000

var (
	form = regexp.MustCompile(`^(0|[1-9][0-9]{0,6})(\.[0-9]{1,9})?$`)
	// ErrAmount says what an Amount looks like.
	ErrAmount = errors.New("a decimal number in quotes, such as \"0.0005\", up to 1000000, with at most nine places")
)

// ParseAmount reads a decimal number. It takes time linear in s, of which it reads 17 bytes
// at most.
func ParseAmount(s string) (Amount, error) {
	if len(s) > 17 || !form.MatchString(s) {
		return Amount{}, ErrAmount
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, ok := new(big.Int).SetString(whole+(fraction + "000000000")[:9], 10)
	if !ok || !n.IsInt64() || n.Int64() > MaxWhole*nano {
		return Amount{}, ErrAmount
	}
	return Amount{n.Int64()}, nil
}

// Minor is a in the smallest unit of a currency; false if a is no whole number of it.
func (a Amount) Minor(currency string) (int64, bool) {
	unit := int64(nano / power(Places(currency)))
	return a.nanos / unit, a.nanos%unit == 0
}

// withoutPlaces are the currencies whose smallest unit is the whole one; all others that
// prices may have are of a hundred parts, as providers count them.
var withoutPlaces = []string{"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"}

// withThreePlaces are of a thousand parts, which providers round each in a way of its own.
var withThreePlaces = []string{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// Currency reports whether prices may be in a currency.
func Currency(code string) bool {
	return currencyForm.MatchString(code) && !slices.Contains(withThreePlaces, code)
}

// Places is how many decimal places a currency has: 0 or 2.
func Places(currency string) int {
	if slices.Contains(withoutPlaces, currency) {
		return 0
	}
	return 2
}

// power is 10 to the n.
func power(n int) (p int64) {
	for p = 1; n > 0; n-- {
		p *= 10
	}
	return p
}

// Share is what part of a month a price is for: Days of Of.
type Share struct{ Days, Of int }

// Fee is a part of the monthly fee, rounded half up.
func (p Plan) Fee(s Share) int64 {
	return divide(product(p.Monthly, int64(s.Days)), big.NewInt(int64(s.Of)))
}

// IncludedIn is how many units of a part of a month cost nothing, rounded up.
func (u Unit) IncludedIn(s Share) int64 {
	n := product(u.Included, int64(s.Days))
	n.Add(n, big.NewInt(int64(s.Of-1)))
	return n.Div(n, big.NewInt(int64(s.Of))).Int64()
}

// Cost is what a quantity above what is included costs, in the smallest unit of the
// currency: quantity × amount ÷ per, rounded half up once, at the end. ok is false when it is
// no number of 64 bits.
func (u Unit) Cost(quantity int64, currency string) (minor int64, ok bool) {
	n := product(quantity, u.Amount.nanos)
	n.Mul(n, big.NewInt(power(Places(currency))))
	d := product(u.Per, nano)
	n.Add(n.Lsh(n, 1), d).Div(n, d.Lsh(d, 1))
	return n.Int64(), n.IsInt64()
}

// product is a × b, of any size.
func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// divide is n ÷ d, rounded half up.
func divide(n, d *big.Int) int64 {
	double := new(big.Int).Lsh(n, 1)
	double.Add(double, d)
	return double.Div(double, new(big.Int).Lsh(d, 1)).Int64()
}

// String writes a as ParseAmount reads it.
func (a Amount) String() string {
	whole, rest := a.nanos/nano, a.nanos%nano
	text := big.NewInt(whole).String()
	if rest == 0 {
		return text
	}
	digits := big.NewInt(nano + rest).String()[1:]
	return text + "." + strings.TrimRight(digits, "0")
}
