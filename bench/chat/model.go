package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// model is the provider: it sends as many chunks as the prompt says, as fast as
// the prompt says, each with the time at which it was sent.
type model struct {
	*http.Server
	addr string
}

// startModel serves the model for the rest of the program.
func startModel(addr string) (*model, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &model{&http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}, l.Addr().String()}
	go func() { _ = m.Serve(l) }() // it ends when the program does
	return m, nil
}

// base is the model's base URL.
func (m *model) base() string { return "http://" + m.addr + "/v1" }

// answer reads a prompt of "<chunks> <gap in ns>".
func answer(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Messages []struct{ Content string }
	}
	var chunks int
	var gap time.Duration
	err := json.NewDecoder(r.Body).Decode(&ask)
	if err == nil && len(ask.Messages) > 0 {
		_, err = fmt.Sscanf(ask.Messages[len(ask.Messages)-1].Content, "%d %d", &chunks, &gap)
	}
	if err != nil {
		http.Error(w, `{"error":{"message":"the prompt is not for the bench"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	say := func(choices, rest string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}`+"\n\n", choices, rest)
		_ = flush()
	}
	for range chunks {
		say(fmt.Sprintf(`{"index":0,"delta":{"role":"assistant","content":"%d "},"finish_reason":null}`, time.Now().UnixNano()), "")
		time.Sleep(gap)
	}
	say(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	say("", `,"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// client keeps as many connections as streams are open.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, DisableCompression: true}}

// stream asks once and adds to first the time to the first chunk, and to chunks
// the delay of each; either may be nil.
func (s *subject) stream(first, delays *durations, chunks int, gap time.Duration) error {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1000000,"stream":true,"messages":[{"role":"user","content":"%d %d"}]}`, s.model, chunks, gap)
	req, err := http.NewRequest(http.MethodPost, s.base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.key)
	for _, h := range s.extra {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Set(name, value)
	}
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
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
