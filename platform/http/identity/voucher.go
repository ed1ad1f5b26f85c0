package identity

import (
	"net/http"

	"sluice.dev/sluice/filters/identityheader"
)

// Vouch puts a voucher into out, the headers of a request that a service makes
// at the gateway with the credential of the request that it serves, whose
// headers are in: the edge then judges, counts and names the client's address,
// not the service's. It signs with the secret that the edge has signed with: the
// platform's, where the service holds that, since every edge believes it. A
// request that no edge has signed is not vouched for, nor is one without an
// address: the service's own is judged then.
func (v Verifier) Vouch(out, in http.Header) {
	out.Del(identityheader.VoucherHeader)
	values, addresses := in.Values(identityheader.Header), in.Values(AddressHeader)
	if len(values) != 1 || len(addresses) != 1 {
		return
	}
	value, now := values[0], v.now()
	product := identityheader.Product(value)
	for _, secret := range v.platform() {
		if c, err := verifyOne(secret, product, value, now); err == nil {
			out.Set(identityheader.VoucherHeader, identityheader.SignVoucher(secret, identityheader.Voucher{Address: addresses[0], Key: c.Key}, now))
			return
		}
	}
	for _, secret := range v.own(identityheader.Vouching) {
		if c, err := identityheader.VerifyFor([][]byte{secret}, identityheader.Vouching, value, now); err == nil {
			out.Set(identityheader.VoucherHeader, identityheader.SignOwnVoucher(secret, identityheader.Voucher{Address: addresses[0], Key: c.Key}, now))
			return
		}
	}
}

// verifyOne verifies a value with one secret of the platform.
func verifyOne(secret []byte, product, value string, now int64) (Caller, error) {
	if product == "" {
		return identityheader.Verify([][]byte{secret}, value, now)
	}
	return identityheader.VerifyFor([][]byte{identityheader.ProductSecret(secret, product)}, product, value, now)
}
