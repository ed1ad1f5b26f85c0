package chat_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
)

// BenchmarkChunk is the way of one chunk from the provider through the runtime
// to the client over loopback, with nothing else under way.
func BenchmarkChunk(b *testing.B) {
	next := make(chan bool)
	p := serve(func(w http.ResponseWriter, r *http.Request) {
		say := events(hel)
		for say(w, r); <-next; {
			say(w, r)
		}
	})
	defer p.Close()
	u, err := upstream.New(upstream.Config{BaseURL: p.URL})
	if err != nil {
		b.Fatal(err)
	}
	h := chat.NewHandler(chat.Config{Pool: chat.NewPool([]chat.Target{{Provider: u}}, nil)})
	rt := serve(h.ServeHTTP)
	defer rt.Close()
	resp, err := http.Post(rt.URL, "application/json", strings.NewReader(strings.Replace(ask, "{", `{"max_tokens":100000000,`, 1)))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	read := func() {
		for in.Scan() && in.Text() == "" {
		}
	}
	read()
	b.ReportAllocs()
	for b.Loop() {
		next <- true
		read()
	}
	next <- false
}
