package mcp

import (
	"net/http"
	"testing"
)

// A handler that writes more than a tool may answer finds nobody to write to.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	var stopped error
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for stopped == nil {
			_, stopped = w.Write(make([]byte, 1<<20))
		}
	})
	if _, err := serve(t.Context(), endless, http.MethodGet, "/", nil, nil); err == nil || stopped == nil {
		t.Errorf("%v, stopped by %v", err, stopped)
	}
}
