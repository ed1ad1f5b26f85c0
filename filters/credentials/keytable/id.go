package keytable

// Prefixes of identifiers.
const (
	AccountPrefix = "acct_"
	KeyPrefix     = "key_"
)

// idDigits is Crockford's base 32 in lower case: no i, l, o, u.
const idDigits = "0123456789abcdefghjkmnpqrstvwxyz"

// IDLen is the number of digits after an identifier's prefix.
const IDLen = 13

// FormatID gives the text of an identifier: prefix and 13 digits.
func FormatID(prefix string, n uint64) string {
	b := make([]byte, 0, 24)
	return string(AppendID(append(b, prefix...), n))
}

// AppendID appends the 13 digits of n to dst.
func AppendID(dst []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 5 {
		dst = append(dst, idDigits[n>>shift&31])
	}
	return dst
}

// ParseID reads what FormatID wrote; ok is false for anything else. It looks at
// 13 digits at most, and allocates nothing.
func ParseID(prefix, s string) (n uint64, ok bool) {
	if len(s) != len(prefix)+IDLen || s[:len(prefix)] != prefix {
		return 0, false
	}
	for i := len(prefix); i < len(s); i++ {
		d := digit(s[i])
		if d < 0 || n>>59 != 0 {
			return 0, false
		}
		n = n<<5 | uint64(d)
	}
	return n, true
}

func digit(c byte) int {
	for i := range idDigits {
		if idDigits[i] == c {
			return i
		}
	}
	return -1
}
