package identity

import (
	"net/http"

	edge "sluice.dev/sluice/filters/identity"
)

// Vouch puts a voucher into out, the headers of a request that a service makes
// at the gateway with the credential of the request that it serves, whose
// headers are in: the edge then judges, counts and names the client's address,
// not the service's. It signs with the secret that the edge has signed with: the
// platform's, where the service holds that, since every edge believes it. A
// request that no edge has signed is not vouched for, nor is one without an
// address: the service's own is judged then.
func (v Verifier) Vouch(out, in http.Header) {
	out.Del(edge.VoucherHeader)
	values, addresses := in.Values(edge.Header), in.Values(AddressHeader)
	if len(values) != 1 || len(addresses) != 1 {
		return
	}
	value, now := values[0], v.now()
	product := edge.Product(value)
	for _, secret := range v.platform() {
		if c, err := verifyOne(secret, product, value, now); err == nil {
			out.Set(edge.VoucherHeader, edge.SignVoucher(secret, edge.Voucher{Address: addresses[0], Key: c.Key}, now))
			return
		}
	}
	for _, secret := range v.own(edge.Vouching) {
		if c, err := edge.VerifyFor([][]byte{secret}, edge.Vouching, value, now); err == nil {
			out.Set(edge.VoucherHeader, edge.SignOwnVoucher(secret, edge.Voucher{Address: addresses[0], Key: c.Key}, now))
			return
		}
	}
}

// verifyOne verifies a value with one secret of the platform.
func verifyOne(secret []byte, product, value string, now int64) (Caller, error) {
	if product == "" {
		return edge.Verify([][]byte{secret}, value, now)
	}
	return edge.VerifyFor([][]byte{edge.ProductSecret(secret, product)}, product, value, now)
}
