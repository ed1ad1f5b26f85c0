package chat_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/runtime/chat"
)

// TestClientGone waits for the provider to see that its stream is over, which
// is the only signal there is: without it the test hangs.
func TestClientGone(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		events(role, hel, lo)(w, r)
		<-r.Context().Done()
		close(over)
	})
	l := newLedger()
	rt := withCaller(t, chat.Config{Ledger: l}, p.target(t))
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", rt.URL, strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	contains(t, resp.Body, `"lo"`)
	leave()
	<-over
	if u := <-l.settled; u.Completion != 1 || !u.Estimated || u.Prompt == 0 {
		t.Errorf("charged %+v, want what was produced", u)
	}
}

func TestClientGoneBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}), make(chan struct{})
	p := newProvider(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(over)
	})
	l := newLedger()
	rt := withCaller(t, chat.Config{Ledger: l}, p.target(t), p.target(t))
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", rt.URL, strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-asked
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("answered")
	}
	<-over
	if u := <-l.settled; u.Prompt == 0 || len(p.asked) != 1 {
		t.Errorf("charged %+v, asked %d times", u, len(p.asked))
	}
}

// TestChunksAreForwardedAsTheyCome has a provider that sends the next chunk only
// once the client has read the one before.
func TestChunksAreForwardedAsTheyCome(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	rt := runtime(t, chat.Config{}, newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		for _, e := range []string{role, hel, lo} {
			events(e)(w, r)
			<-next
		}
		events(stop, done)(w, r)
	}).target(t))
	body := post(t, rt.URL, ask).Body
	for _, want := range []string{`"role"`, `"Hel"`, `"lo"`} {
		contains(t, body, want)
		next <- struct{}{}
	}
	contains(t, body, "[DONE]")
}
