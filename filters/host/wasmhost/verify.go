package wasmhost

import (
	"encoding/binary"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/signature"
)

// Verify reports whether sum is k's signature of signed: by Envoy's own
// verify_signature where it knows the algorithm.
func (Shared) Verify(k jwt.Key, signed string, sum []byte) bool {
	switch k.Alg {
	case jwt.ES256:
		der, ok := jwt.DER(sum)
		return ok && verifyInEnvoy(k.Public, signed, der)
	case jwt.RS256:
		return verifyInEnvoy(k.Public, signed, sum)
	}
	return signature.Verify(k, []byte(signed), sum)
}

// verifyInEnvoy calls verify_signature, whose argument and answer are protobuf
// messages: hash_function = 1, public_key = 2, signature = 3, text = 4; the
// answer's field 1 is true.
func verifyInEnvoy(public []byte, signed string, sum []byte) bool {
	b := make([]byte, 0, 32+len(public)+len(sum)+len(signed))
	b = field(b, 1, "sha256")
	b = field(b, 2, text(public))
	b = field(b, 3, text(sum))
	b = field(b, 4, signed)
	answer, err := proxywasm.CallForeignFunction("verify_signature", b)
	return err == nil && len(answer) >= 2 && answer[0] == 8 && answer[1] == 1
}

// field appends a field of bytes.
func field(b []byte, number byte, value string) []byte {
	b = append(b, number<<3|2)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}
