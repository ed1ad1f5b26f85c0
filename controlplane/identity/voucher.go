package identity

import (
	"net/http"

	edge "sluice.dev/sluice/filters/identity"
)

// Vouch puts a voucher into out, the headers of a request that a service makes
// at the gateway with the credential of the request that it serves, whose
// headers are in: the edge then judges, counts and names the client's address,
// not the service's. It signs with the secret that the edge has signed with. A
// request that no edge has signed is not vouched for, nor is one without an
// address: the service's own is judged then.
func (v Verifier) Vouch(out, in http.Header) {
	out.Del(edge.VoucherHeader)
	values, addresses := in.Values(edge.Header), in.Values(AddressHeader)
	if len(values) != 1 || len(addresses) != 1 || v.Secrets == nil {
		return
	}
	for _, secret := range v.Secrets() {
		if c, err := edge.Verify([][]byte{secret}, values[0], v.now()); err == nil {
			out.Set(edge.VoucherHeader, edge.SignVoucher(secret, edge.Voucher{Address: addresses[0], Key: c.Key}, v.now()))
			return
		}
	}
}
