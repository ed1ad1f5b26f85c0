package fetch

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// A source that sends a little in each answer, and takes its time for each, is given
// up for good.
func TestASourceThatTricklesIsGivenUp(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes "+strconv.Itoa(asked)+"-"+strconv.Itoa(asked)+"/1000000000")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte("x"))
		asked++
	}))
	t.Cleanup(s.Close)
	r := Open(t.Context(), NewClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), s.URL)
	at := time.Unix(1_800_000_000, 0)
	r.now = func() time.Time { at = at.Add(20 * time.Second); return at }
	n, err := io.Copy(io.Discard, r)
	if e, ok := errors.AsType[*Error](err); !ok || !e.Permanent || n != 3 || asked != 4 {
		t.Errorf("%d bytes by %d requests, %v", n, asked, err)
	}
}
