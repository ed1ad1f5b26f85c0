package jwt

// Alg is a signature algorithm of RFC 7518 section 3.1. A key has one, and a
// token is checked by its key's: the header only has to agree.
type Alg uint8

// The algorithms. There are no others: `none` and the shared-secret ones do
// not exist here.
const (
	ES256 Alg = 1 // ECDSA with P-256 and SHA-256
	RS256 Alg = 2 // RSA PKCS#1 v1.5 with SHA-256
	PS256 Alg = 3 // RSA PSS with SHA-256
	EdDSA Alg = 4 // Ed25519
)

var algNames = [...]string{ES256: "ES256", RS256: "RS256", PS256: "PS256", EdDSA: "EdDSA"}

// AlgOf returns the algorithm with the given name, in its exact spelling.
func AlgOf(name string) (Alg, bool) {
	for a, n := range algNames {
		if n == name && n != "" {
			return Alg(a), true
		}
	}
	return 0, false
}

// String returns the name of a; "" when it is none of the algorithms.
func (a Alg) String() string {
	if int(a) < len(algNames) {
		return algNames[a]
	}
	return ""
}
