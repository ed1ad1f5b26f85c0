package resources

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// A line has the name of the route as the document gives it, whatever the revision,
// and none where there was no route.
func TestAccessLogNamesTheRoute(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	d.AccessLog, d.AnonymousPerMinute = "all", 1<<20
	d.Routes = append(d.Routes, config.Route{Name: "a.name-of_3", Path: "/v1/named/{id}", Respond: &config.Respond{Status: 418}, Auth: []string{"none"}})
	var log bytes.Buffer
	addr, cmd := started(t, static(t, build(t, d, Options{Addresses: addresses}), Addresses{Gateway: "127.0.0.1:0"}), &log, 1)
	want := map[string]any{"/v1/named/x": "a.name-of_3", "/v1/nothing/here": config.Unmapped, "/nothing": config.Absent, "/a/b": nil}
	for _, path := range []string{"/v1/named/x", "/v1/nothing/here", "/nothing", "/a%2Fb"} { // the last is refused before there is a route
		request(t, http.MethodGet, "http://"+addr+path+"?secret=1", nil)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // it writes what it has before it ends
		t.Fatal(err)
	}
	_ = cmd.Wait()
	got := map[string]any{}
	for line := range strings.Lines(log.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got[l["path"].(string)] = l["route"]
	}
	for path, name := range want {
		if found, ok := got[path]; !ok || found != name {
			t.Errorf("%s: the log names %v, want %v, of %v", path, found, name, got)
		}
	}
}
