package chat_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/runtime/chat"
)

// shared is a runtime with 16 places, whose caller is the account in a header,
// in front of a provider that answers when it is told; over gets a word whenever
// a request has given its places back.
func shared(t *testing.T) (url string, begun, end chan struct{}, over chan string) {
	t.Helper()
	begun, end, over = make(chan struct{}, 100), make(chan struct{}), make(chan string, 100)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		events(role)(w, r)
		begun <- struct{}{}
		select {
		case <-end:
			events(stop, spent, done)(w, r)
		case <-r.Context().Done():
		}
	})
	h := chat.NewHandler(chat.Config{
		Pool: chat.NewPool([]chat.Target{p.target(t)}, nil), Adapter: quiet, Places: fairshare.New(fairshare.Config{Places: 16}),
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := r.Header.Get("Account")
		h.ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{Account: account})))
		over <- account
	}))
	t.Cleanup(s.Close)
	return s.URL, begun, end, over
}

// An account that has as many streams as it may slows nobody else.
func TestAnAccountHasItsShareOfStreams(t *testing.T) {
	t.Parallel()
	url, begun, end, over := shared(t)
	for range 4 {
		post(t, url, ask, "Account", "greedy")
		<-begun
	}
	r := post(t, url, ask, "Account", "greedy")
	if code, _ := failure(t, r); r.StatusCode != 429 || code != "rate_limit_exceeded" || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more than its share: %d %s %v", r.StatusCode, code, r.Header)
	}
	<-over
	others := post(t, url, ask, "Account", "modest")
	<-begun
	if others.StatusCode != 200 {
		t.Errorf("another account: %d", others.StatusCode)
	}
	for range 5 {
		end <- struct{}{}
	}
	for range 5 {
		<-over
	}
	if r := post(t, url, ask, "Account", "greedy"); r.StatusCode != 200 {
		t.Errorf("when its streams are over: %d", r.StatusCode)
	}
}

// Places come back when the client leaves.
func TestPlacesOfThoseWhoLeave(t *testing.T) {
	t.Parallel()
	url, begun, _, over := shared(t)
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		for range 4 {
			req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(ask))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Account", "hasty")
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			defer resp.Body.Close()
			<-begun
		}
		leave()
		for range 4 {
			<-over
		}
	}
}

// A long request counts for as much as it holds, whether its length is said or
// not, and gives it all back.
func TestLongRequestsTakeSeveralPlaces(t *testing.T) {
	t.Parallel()
	url, begun, end, over := shared(t)
	of := func(kib int) string { return strings.Replace(ask, `"hi"`, `"`+strings.Repeat("x", kib<<10)+`"`, 1) }
	chunked := func(body string) (status int) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Account", "long")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	post(t, url, of(100), "Account", "long") // two places of four
	<-begun
	for range 3 {
		if r := post(t, url, of(130), "Account", "long"); r.StatusCode != 429 {
			t.Errorf("three places more: %d", r.StatusCode)
		}
		<-over
		if status := chunked(of(200)); status != 429 {
			t.Errorf("the same in chunks: %d", status)
		}
		<-over
	}
	end <- struct{}{}
	<-over
	r := post(t, url, of(130), "Account", "long")
	<-begun
	if r.StatusCode != 200 {
		t.Errorf("when there is room: %d", r.StatusCode)
	}
}
