package main

import (
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
)

// The request log learns why a request was refused and whose it was, and no product
// would take that for an identity.
func TestARefusalIsNoted(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		account, id := ";a="+keytable.FormatID("acct_", 9), ";k="+keytable.FormatID("key_", 7)+";p=small;s="
		expired := keyRecord()
		expired.Expires = 1
		for _, c := range []struct {
			name, route string
			record      keytable.Record
			headers     [][2]string
			want        string
		}{
			{"no key", "streams.list", keyRecord(), [][2]string{{identityheader.Header, "refused;a=acct_forged"}}, "refused;c=" + string(decision.AuthRequired)},
			{"no scope", "clips.create", keyRecord(), [][2]string{bearer(key)}, "refused;c=AUTH_002;f=scope;i=is not granted to this credential;x=clips:write" + account + id + "streams:read"},
			{"an expired key", "streams.list", expired, [][2]string{bearer(key)}, "refused;c=" + string(decision.TokenExpired) + account + id + "streams:read"},
			{"no route", "unmapped", keyRecord(), [][2]string{bearer(key)}, "refused;c=" + string(decision.RouteNotMapped)},
		} {
			load(c.record, secretRecord())
			r := send(t, h, c.route, c.headers...)
			if got := r.request[identityheader.Header]; r.status < 400 || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %d %q, want %q", c.name, r.status, got, c.want)
			} else if _, err := told("media", got, 0); err == nil {
				t.Errorf("%s: %q is taken for an identity", c.name, got)
			}
		}
		load(keyRecord(), secretRecord())
		if r := send(t, h, "streams.list", bearer(key)); r.status != 0 || strings.Contains(r.request[identityheader.Header], "refused") {
			t.Errorf("one that passes: %d %q", r.status, r.request[identityheader.Header])
		}
	})
}
