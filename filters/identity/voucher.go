package identity

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
// where the MAC, with the secret of identity headers, covers everything before
// ";m=". It speaks for that credential alone, and for Lifetime at most. Clients
// may send the header, but cannot sign it; products never see it.
const VoucherHeader = "sluice-voucher"

// Voucher is what a service vouches for.
type Voucher struct {
	Address string // of the client, without a port
	Key     string // the credential that came from there; see Caller.Key
}

const voucherForm = "c1;a="

// SignVoucher returns the header value for v, valid until now+Lifetime; now is
// in unix seconds.
func SignVoucher(secret []byte, v Voucher, now int64) string {
	b := append(make([]byte, 0, 192), voucherForm...)
	b = append(b, v.Address...)
	b = append(b, ";k="...)
	b = append(b, v.Key...)
	b = append(b, ";e="...)
	b = strconv.AppendInt(b, now+Lifetime, 10)
	sum := mac(secret, b)
	b = append(b, ";m="...)
	return string(hex.AppendEncode(b, sum))
}

// VerifyVoucher returns the address that value vouches for; ok is false unless
// secret has signed it for this credential and it has not expired at now.
func VerifyVoucher(secret []byte, value, key string, now int64) (addr netip.Addr, ok bool) {
	if len(value) > maxVoucher || len(secret) == 0 || key == "" {
		return netip.Addr{}, false
	}
	signed, sum, _ := strings.Cut(value, ";m=")
	want, err := hex.DecodeString(sum)
	if err != nil || !hmac.Equal(mac(secret, []byte(signed)), want) {
		return netip.Addr{}, false
	}
	rest, form := strings.CutPrefix(signed, voucherForm)
	fields := strings.Split(rest, ";")
	if !form || len(fields) != 3 || fields[1] != "k="+key {
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
