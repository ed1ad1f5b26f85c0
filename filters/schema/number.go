package schema

import "math/bits"

// decimal is a number as it stands in a text: digits, with a point among them
// perhaps, times ten to the power of exp. It points into that text.
type decimal struct {
	negative bool
	digits   string // from the first digit that is not 0 to the last; may have a point
	n        int    // digits in it
	exp      int    // of the last digit
}

// maxExponent is where exponents stop counting: far beyond what digits of a body
// could make up for.
const maxExponent = 1 << 28

// parseDecimal reads a JSON number. It takes time linear in raw.
func parseDecimal(raw string) decimal {
	d := decimal{}
	if raw[0] == '-' {
		d.negative, raw = true, raw[1:]
	}
	first, last, point, end := -1, -1, -1, len(raw)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '.':
			point = i
		case c|0x20 == 'e':
			end = i
		case c != '0':
			if first < 0 {
				first = i
			}
			last = i
		}
		if end == i {
			break
		}
	}
	if first < 0 {
		return decimal{}
	}
	if point < 0 {
		point = end
	}
	d.digits, d.n = raw[first:last+1], last+1-first
	if first < point && point < last {
		d.n--
	}
	d.exp = point - last - 1
	if last > point {
		d.exp = point - last
	}
	if end < len(raw) {
		d.exp += exponent(raw[end+1:])
	}
	return d
}

func exponent(raw string) int {
	e := 0
	for i := range len(raw) {
		if c := raw[i]; c >= '0' && c <= '9' && e < maxExponent {
			e = e*10 + int(c-'0')
		}
	}
	if raw[0] == '-' {
		return -e
	}
	return e
}

// decimal returns the decimal at place p of the table.
func (t *Table) decimal(p uint32) decimal {
	digits := t.at(p + DecimalDigits)
	return decimal{t.words[p+DecimalNegative] != 0, digits, len(digits), int(int32(t.words[p+DecimalExponent]))}
}

func (d decimal) integer() bool { return d.n == 0 || d.exp >= 0 }

// compare returns -1, 0 or 1 as d is less than, equal to or greater than o.
func (d decimal) compare(o decimal) int {
	switch {
	case d.n == 0 && o.n == 0:
		return 0
	case d.n == 0:
		return sign(!o.negative)
	case o.n == 0, d.negative != o.negative:
		return sign(d.negative)
	}
	if c := d.magnitude(o); c != 0 {
		return c * sign(d.negative)
	}
	return 0
}

// sign is -1 for what is less.
func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// magnitude compares two numbers that are not 0 without their signs.
func (d decimal) magnitude(o decimal) int {
	if a, b := d.n+d.exp, o.n+o.exp; a != b {
		return sign(a < b)
	}
	i, j := 0, 0
	for i < len(d.digits) && j < len(o.digits) {
		a, b := d.digits[i], o.digits[j]
		switch {
		case a == '.':
			i++
		case b == '.':
			j++
		case a != b:
			return sign(a < b)
		default:
			i, j = i+1, j+1
		}
	}
	// Neither ends with 0, so the longer one is the greater.
	switch {
	case i < len(d.digits):
		return 1
	case j < len(o.digits):
		return -1
	}
	return 0
}

// multiple reports whether d is an integer times m, whose digits make a number
// below 2^60. It takes time linear in the digits of d.
func (d decimal) multiple(m decimal) bool {
	if d.n == 0 {
		return true
	}
	if d.exp < m.exp {
		return false // d's last digit is not 0, so it is no multiple of ten times anything
	}
	of, rest := uint64(0), uint64(0)
	for i := range len(m.digits) {
		of = of*10 + uint64(m.digits[i]-'0')
	}
	for i := range len(d.digits) {
		if c := d.digits[i]; c != '.' {
			rest = (rest*10 + uint64(c-'0')) % of
		}
	}
	return product(rest, power(10%of, d.exp-m.exp, of), of) == 0
}

// power returns base to the power of n, modulo of.
func power(base uint64, n int, of uint64) uint64 {
	result := 1 % of
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = product(result, base, of)
		}
		base = product(base, base, of)
	}
	return result
}

func product(a, b, of uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, of)
}
