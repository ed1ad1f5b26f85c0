package identityheader

import (
	"crypto/hmac"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// VoucherHeader is the header by which a service of ours that calls the gateway
// with its caller's credential tells the edge from where that caller calls. Its
// value is
//
//	c1;a=<address>;k=<credential>;e=<unix seconds>;m=<hex HMAC-SHA256>
//
// where the MAC, with the platform's secret, covers everything before ";m=". It
// speaks for that credential alone, and for Lifetime at most. Clients may send the
// header, but cannot sign it; products never see it. A service that holds but its
// own secret opens its value with c2 and signs with that: the edge believes it of
// Vouching alone.
const VoucherHeader = "sluice-voucher"

// Vouching is the one product whose own secret is good for vouchers too: that of
// the chat runtime, which calls the gateway with its callers' credentials.
const Vouching = "runtime"

// Voucher is what a service vouches for.
type Voucher struct {
	Address string // of the client, without a port
	Key     string // the credential that came from there; see Caller.Key
}

const (
	voucherForm    = "c1;a=" // signed with the platform's secret
	voucherFormOwn = "c2;a=" // with the secret of Vouching
)

// SignVoucher returns the header value for v, signed with the platform's secret
// and valid until now+Lifetime; now is in unix seconds.
func SignVoucher(secret []byte, v Voucher, now int64) string {
	return signVoucher(secret, voucherForm, v, now)
}

// SignOwnVoucher is like SignVoucher, with the secret of the product Vouching.
func SignOwnVoucher(secret []byte, v Voucher, now int64) string {
	return signVoucher(secret, voucherFormOwn, v, now)
}

func signVoucher(secret []byte, form string, v Voucher, now int64) string {
	b := append(make([]byte, 0, 192), form...)
	b = append(b, v.Address...)
	b = append(b, ";k="...)
	b = append(b, v.Key...)
	b = append(b, ";e="...)
	b = strconv.AppendInt(b, now+Lifetime, 10)
	sum := mac(secret, b)
	b = append(b, ";m="...)
	return string(hex.AppendEncode(b, sum))
}

// VerifyVoucher returns the address that value vouches for; ok is false unless it
// was signed for this credential, with the platform's secret or the one of Vouching
// that is derived from it, and has not expired at now. It costs two MACs at most.
func VerifyVoucher(platform []byte, value, key string, now int64) (addr netip.Addr, ok bool) {
	if len(value) > maxVoucher || len(platform) == 0 || key == "" {
		return netip.Addr{}, false
	}
	secret, form := platform, voucherForm
	if strings.HasPrefix(value, voucherFormOwn) {
		secret, form = ProductSecret(platform, Vouching), voucherFormOwn
	}
	signed, sum, _ := strings.Cut(value, ";m=")
	want, err := hex.DecodeString(sum)
	if err != nil || !hmac.Equal(mac(secret, []byte(signed)), want) {
		return netip.Addr{}, false
	}
	rest, formed := strings.CutPrefix(signed, form)
	fields := strings.Split(rest, ";")
	if !formed || len(fields) != 3 || fields[1] != "k="+key {
		return netip.Addr{}, false
	}
	end, numbered := strings.CutPrefix(fields[2], "e=")
	until, err := strconv.ParseInt(end, 10, 64)
	if !numbered || err != nil || now >= until {
		return netip.Addr{}, false
	}
	addr, err = netip.ParseAddr(fields[0])
	return addr.Unmap(), err == nil
}

// maxVoucher bounds a value before it is looked at, in bytes.
const maxVoucher = 512
