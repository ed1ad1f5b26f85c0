package main

import (
	"net/netip"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
)

// CallerAddress is the address, with a port, of a caller with a good key or
// token: the one that a service of ours vouches for, else the client's.
func (e *env) CallerAddress(c *keytable.Record, token string) string {
	if addr, ok := e.vouchedAddress(c, token); ok {
		return netip.AddrPortFrom(addr, 0).String()
	}
	return e.ClientAddress()
}

// vouchedAddress is the address that a service of ours vouches for; ok is false on all
// requests that no such service makes.
func (e *env) vouchedAddress(c *keytable.Record, token string) (addr netip.Addr, ok bool) {
	value := wasmhost.Header(identityheader.VoucherHeader)
	if value == "" {
		return netip.Addr{}, false
	}
	now := e.millis / 1000
	if !e.callers.refresh(now) {
		return netip.Addr{}, false
	}
	return identityheader.VerifyVoucher(e.callers.secret.Secret[:], value, credentialID(c, token), now)
}

// credentialID is what the identity header names: the key, or the session or grant
// of a token.
func credentialID(c *keytable.Record, token string) string {
	if token != "" {
		return token
	}
	return keytable.FormatID(keytable.KeyPrefix, c.ID)
}

// setClientAddress tells the product the address that a service vouches for. Envoy adds
// the connection's, after the filters, where there is none.
func (e *env) setClientAddress(c *keytable.Record, token string) error {
	if addr, ok := e.vouchedAddress(c, token); ok {
		return proxywasm.ReplaceHttpRequestHeader(identityheader.AddressHeader, addr.String())
	}
	return nil
}
