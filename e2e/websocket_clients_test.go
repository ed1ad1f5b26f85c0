//go:build clients

package e2e

import "testing"

// Python's library for WebSockets, with compression, large messages and pings.
func TestWebSocketClients(t *testing.T) {
	s := own(t, nil)
	s.sockets(t)
	key, _ := s.newKey(t, "streams:read")
	type echoes struct {
		Same       bool
		Protocol   string
		Compressed bool
	}
	seen := intoText[struct {
		Header, Protocol echoes
		None, Plain      string
		Reset            bool
	}](t, program{"websockets-python", "requirements.txt", pipInstall, pythonMain}.prints(t, "BASE="+s.url(""), "KEY="+key))
	if !seen.Header.Same || !seen.Protocol.Same || seen.Protocol.Protocol != "chat" || seen.None != "401 authentication_required" ||
		seen.Plain != "403 upgrade_refused" || !seen.Reset {
		t.Errorf("%+v", seen)
	}
}
