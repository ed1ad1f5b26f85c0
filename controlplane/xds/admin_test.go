package xds

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/respond"
)

func TestEdgesOverHTTP(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 3, document(t))
	connected(t, s, addr, "edge-b")
	connected(t, s, addr, "edge-a")
	r := chi.NewRouter()
	s.AdminRoutes(respond.Adapter{})(r)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/edges", nil))
	var got struct {
		Version int64
		Data    []EdgeStatus
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || got.Version != 3 || len(got.Data) != 2 || got.Data[0].ID != "edge-a" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, typ := range got.Data[1].Types {
		if !typ.Current || typ.Wanted != typ.Held || typ.Resources == 0 {
			t.Errorf("%+v", typ)
		}
	}
}
