package e2e

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// However the requests of an account come to an Envoy's workers, one after the
// other on one connection or all at once on many, a limit of 600 lets 600 through,
// and tells each of them another number that remains.
func TestLimitIsExactAmongWorkers(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	const limit = 600
	key := s.limited(t, "exact", limit)
	var mu sync.Mutex
	told := map[int]bool{}
	refused := 0
	// ask makes n requests on a connection of its own.
	ask := func(n int) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		for range n {
			req, err := http.NewRequest(http.MethodGet, s.url("/v1/streams"), nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			left, err := strconv.Atoi(res.Header.Get("X-RateLimit-Remaining"))
			mu.Lock()
			switch {
			case res.StatusCode == http.StatusTooManyRequests:
				refused++
			case res.StatusCode != http.StatusOK || err != nil || told[left]:
				t.Errorf("%d, %d remaining: told before %v, %v", res.StatusCode, left, told[left], err)
			default:
				told[left] = true
			}
			mu.Unlock()
		}
	}
	for range 4 {
		ask(50) // one worker alone
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { ask(10) })
		}
		wg.Wait()
	}
	ask(50)
	// Waiting for the key has used some up.
	if len(told) > limit || len(told) < limit-20 || len(told)+refused != 650 {
		t.Errorf("%d were let through, %d refused", len(told), refused)
	}
	for left := range len(told) {
		if !told[left] {
			t.Errorf("nobody was told that %d remain", left)
		}
	}
}
