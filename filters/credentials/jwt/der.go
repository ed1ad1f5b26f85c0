package jwt

// half is the length of each number of an ES256 signature, in bytes.
const half = 32

// DER turns an ES256 signature, which is r and s side by side (RFC 7518 section
// 3.4), into the ASN.1 form that verifiers take. ok is false when it is not 64
// bytes long or a number is 0, as in a signature that some verifiers took to
// fit every message.
func DER(signature []byte) (der []byte, ok bool) {
	if len(signature) != 2*half {
		return nil, false
	}
	r, s := integer(signature[:half]), integer(signature[half:])
	if r == nil || s == nil {
		return nil, false
	}
	der = make([]byte, 0, 8+2*half)
	der = append(der, 0x30, byte(len(r)+len(s)))
	return append(append(der, r...), s...), true
}

// integer is the ASN.1 INTEGER of a positive number; nil for 0.
func integer(b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) == 0 {
		return nil
	}
	out := make([]byte, 0, half+3)
	if b[0]&0x80 != 0 { // it would read as negative
		return append(append(out, 2, byte(len(b)+1), 0), b...)
	}
	return append(append(out, 2, byte(len(b))), b...)
}
