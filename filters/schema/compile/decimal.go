package compile

import (
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/schema"
)

// decimal puts a decimal in the table.
func (c *compiler) decimal(d decimal) uint32 {
	w := make([]uint32, schema.DecimalWords)
	if d.negative {
		w[schema.DecimalNegative] = 1
	}
	w[schema.DecimalExponent] = uint32(int32(d.exp))
	w[schema.DecimalDigits], w[schema.DecimalDigits+1] = c.put2(d.digits)
	return c.put(w)
}

// decimal is a number as digits times ten to the power of exp; the digits neither
// begin nor end with 0.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// readDecimal reads a JSON number.
func readDecimal(text string) (d decimal, ok bool) {
	if text == "" || len(text) > 512 {
		return d, false
	}
	number, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	if scientific {
		var err error
		if d.exp, err = strconv.Atoi(exponent); err != nil {
			return d, false
		}
	}
	number, d.negative = strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(number, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exp += len(digits) - len(d.digits) - len(fraction)
	if d.digits == "" {
		return decimal{}, true
	}
	return d, len(d.digits) <= 400 && d.exp > -1<<20 && d.exp < 1<<20
}
