package jsonscan

// Ceiling is where Integer stops counting: a larger number is returned as it.
const Ceiling = 1<<31 - 1

// Integer reads a JSON number. ok is false if it has a fraction: 1e3 and 5.0
// are integers, 0.5 is not. A value beyond ±Ceiling is returned as ±Ceiling.
func Integer(raw []byte) (v int, ok bool) {
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	digits, exp := mantissa(raw)
	if digits == 0 {
		return 0, true
	}
	v, ok = scale(raw, digits, exp)
	if negative {
		v = -v
	}
	return v, ok
}

// mantissa returns how many bytes of raw, the point included, stand up to the
// last digit that is not 0, and the power of ten that scales that digit; 0 if
// all digits are 0.
func mantissa(raw []byte) (n, exp int) {
	// point is where the point stands, end where the exponent or the text ends.
	point, end := -1, len(raw)
	for i, c := range raw {
		if c == '.' {
			point = i
		}
		if c == 'e' || c == 'E' {
			end, exp = i, exponent(raw[i+1:])
			break
		}
		if c >= '1' && c <= '9' {
			n = i + 1
		}
	}
	switch {
	case point < 0:
		exp += end - n
	case n > point:
		exp -= n - point - 1
	default:
		exp += point - n
	}
	return n, exp
}

// exponent reads the digits behind the e. It stops counting far beyond any
// exponent that a body could make up for with digits.
func exponent(raw []byte) int {
	e, negative := 0, raw[0] == '-'
	for _, c := range raw {
		if c >= '0' && c <= '9' && e < 1<<27 {
			e = e*10 + int(c-'0')
		}
	}
	if negative {
		return -e
	}
	return e
}

// scale returns the number that the first n bytes of raw write, a point among
// them left out, times ten to the power of exp. A negative power would leave a
// fraction, as the last of those digits is not 0.
func scale(raw []byte, n, exp int) (int, bool) {
	if exp < 0 {
		return 0, false
	}
	v := int64(0)
	for _, c := range raw[:n] {
		if c == '.' {
			continue
		}
		if v = v*10 + int64(c-'0'); v >= Ceiling {
			return Ceiling, true
		}
	}
	for ; exp > 0; exp-- {
		if v *= 10; v >= Ceiling {
			return Ceiling, true
		}
	}
	return int(v), true
}
