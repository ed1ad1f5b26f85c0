package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// serve is the provider, in a process of its own as providers are: it sends as
// many chunks as the prompt says, as fast as the prompt says, each with the time
// at which it was sent. It writes its address to out, and then a line for each
// client that leaves: its mark, and when.
func serve(addr string, out io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := read(r)
		if err != nil {
			http.Error(w, `{"error":{"message":"the prompt is not for the bench"}}`, http.StatusBadRequest)
			return
		}
		if left := a.answer(w, r); left {
			fmt.Fprintln(out, a.mark, time.Now().UnixNano())
		}
	})
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// ask is what a prompt says: "<chunks> <gap in ns> <mark>".
type ask struct {
	chunks int
	gap    time.Duration
	mark   string
}

// read reads the prompt of a request.
func read(r *http.Request) (a ask, err error) {
	var body struct {
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return a, err
	}
	if len(body.Messages) == 0 {
		return a, errors.New("no messages")
	}
	_, err = fmt.Sscanf(body.Messages[len(body.Messages)-1].Content, "%d %d %s", &a.chunks, &a.gap, &a.mark)
	return a, err
}

// answer streams, and reports whether the client left.
func (a ask) answer(w http.ResponseWriter, r *http.Request) (left bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	say := func(choices, rest string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}`+"\n\n", choices, rest)
		_ = flush()
	}
	for range a.chunks {
		say(fmt.Sprintf(`{"index":0,"delta":{"role":"assistant","content":"%d "},"finish_reason":null}`, time.Now().UnixNano()), "")
		if a.gap == 0 {
			continue
		}
		select {
		case <-time.After(a.gap):
		case <-r.Context().Done():
			return true
		}
	}
	say(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	say("", `,"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	return false
}

// model is the provider's process as its parent sees it.
type model struct {
	*harness.Process
	base string // URL

	mu   sync.Mutex
	left map[string]time.Time // when clients left, by their mark
}

// startModel starts this program once more, as the provider.
func startModel(addr string) (*model, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	cmd := exec.Command(self, "-serve", "-model", addr)
	cmd.Stdout, cmd.Stderr = in, os.Stderr
	m := &model{left: map[string]time.Time{}}
	if m.Process, err = harness.Start(cmd); err != nil {
		return nil, err
	}
	go func() { _ = in.CloseWithError(m.Err()) }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("the model does not start"), lines.Err())
	}
	m.base = "http://" + lines.Text() + "/v1"
	go m.watch(lines)
	return m, nil
}

// watch notes who left, until the process ends.
func (m *model) watch(lines *bufio.Scanner) {
	for lines.Scan() {
		mark, text, _ := strings.Cut(lines.Text(), " ")
		ns, _ := strconv.ParseInt(text, 10, 64) // 0 is far away, and shows
		m.mu.Lock()
		m.left[mark] = time.Unix(0, ns)
		m.mu.Unlock()
	}
}

// leftAt waits until the model has noticed that a client left.
func (m *model) leftAt(mark string) (at time.Time, err error) {
	err = harness.Until(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		var ok bool
		if at, ok = m.left[mark]; !ok {
			return errors.New("the model does not see that the client left")
		}
		return nil
	})
	return at, err
}

// client keeps as many connections as streams are open.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, DisableCompression: true}}

// stream asks once and adds to first the time to the first chunk, and to chunks
// the delay of each; either may be nil.
func (s *subject) stream(first, delays *durations, chunks int, gap time.Duration) error {
	start := time.Now()
	resp, err := s.ask(context.Background(), chunks, gap, "-")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	seen := 0
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		now := time.Now()
		sent, ok := sentAt(in.Text())
		if !ok {
			continue
		}
		if seen++; seen == 1 && first != nil {
			first.add(now.Sub(start))
		}
		if delays != nil {
			delays.add(now.Sub(sent))
		}
	}
	if seen != chunks {
		return errors.New("chunks are missing: " + strconv.Itoa(seen) + " of " + strconv.Itoa(chunks))
	}
	return nil
}

// leave asks once, leaves after the first chunk, and adds to s.cancel the time
// until the model knows.
func (s *subject) leave(m *model) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mark := rand.Text()
	resp, err := s.ask(ctx, 1000, 100*time.Millisecond, mark)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		return err
	}
	gone := time.Now()
	cancel()
	at, err := m.leftAt(mark)
	if err == nil {
		s.cancel.add(at.Sub(gone))
	}
	return err
}

// ask starts a stream.
func (s *subject) ask(ctx context.Context, chunks int, gap time.Duration, mark string) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1000000,"stream":true,"messages":[{"role":"user","content":"%d %d %s"}]}`, s.model, chunks, gap, mark)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.key)
	for _, h := range s.extra {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		err = fmt.Errorf("status %s", resp.Status)
	}
	return resp, err
}

// sentAt finds the time in a chunk, wherever a gateway has put it.
func sentAt(line string) (time.Time, bool) {
	_, rest, ok := strings.Cut(line, `"content":"`)
	if !ok {
		_, rest, ok = strings.Cut(line, `"content": "`)
	}
	text, _, _ := strings.Cut(rest, ` "`)
	ns, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(0, ns), ok && err == nil
}
