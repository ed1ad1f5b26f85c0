package views_test

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"sluice.dev/sluice/runtime/media/views"
)

func TestViewersAreToldApart(t *testing.T) {
	t.Parallel()
	of := func(addr, agent, name string) views.Viewer {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr
		r.Header.Set("User-Agent", agent)
		return views.ViewerOf(r, name)
	}
	base := of("192.0.2.1:1000", "player", "")
	same := []views.Viewer{of("192.0.2.1:2000", "player", "")}
	others := []views.Viewer{of("192.0.2.2:1000", "player", ""), of("192.0.2.1:1000", "browser", ""), of("192.0.2.1:1000", "player", "ann"), of("unix", "player", "")}
	for _, v := range same {
		if !bytes.Equal(v, base) {
			t.Error("another connection is another viewer")
		}
	}
	for i, v := range others {
		if bytes.Equal(v, base) {
			t.Errorf("%d is the same viewer", i)
		}
	}
	if !bytes.Equal(of("192.0.2.1:1", "a", "ann"), of("192.0.2.9:1", "b", "ann")) {
		t.Error("a named viewer is another one on another device")
	}
}
