package relay

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
)

// Claims of payments need no token of the agent's; a path counts as a claim only
// when the replica takes it for one as well.
func TestOnlyTheHubIsOpen(t *testing.T) {
	t.Parallel()
	up := startReplica(t)
	r, _ := startRelay(t, t.TempDir(), up.addr)
	for path, want := range map[string]int{
		"/hub/v1/claims":                            200,
		"/hub/v1/claims/clm_1/settle":               200,
		"/hub/v1/claims/../../../feed/v1/records":   http.StatusUnauthorized,
		"/hub/%2e%2e/feed/v1/records":               http.StatusUnauthorized,
		"/hub/v1/claims/%2e%2e/%2E./x":              http.StatusUnauthorized,
		"/hub/v1/claims/%2e%2e%2f..%2fusage":        http.StatusUnauthorized,
		"/hub/v1/claims//settle":                    http.StatusUnauthorized,
		"/hub/v1/claimsandmore":                     http.StatusUnauthorized,
		"/hub/":                                     http.StatusUnauthorized,
		"/hub/v1/claims/clm_1/settle/../../../../x": http.StatusUnauthorized,
	} {
		conn, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", path)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(path, err)
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		conn.Close()
	}
}
