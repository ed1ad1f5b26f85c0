package sluice

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func chunk(text string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","model":"echo-1","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
}

func stream(body string) http.HandlerFunc {
	return says(200, body, "Content-Type", "text/event-stream")
}

func complete(t *testing.T, body string) (string, error) {
	t.Helper()
	c, s, _ := client(t, stream(body))
	got, err := c.CreateChatCompletion(t.Context(), ChatCompletionRequest{Model: "echo-1", AdditionalProperties: map[string]any{"temperature": 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.bodies[0], `"temperature":0.5`) || s.seen[0].Header.Get("Idempotency-Key") != "" {
		t.Error(s.bodies[0], s.seen[0].Header)
	}
	return got.Text()
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	if text, err := complete(t, ": waiting\n\n"+chunk("Hel")+chunk("lo")+`data: {"choices":[],"usage":{}}`+"\n\ndata: [DONE]\n\n"); text != "Hello" || err != nil {
		t.Error(text, err)
	}
	if text, err := complete(t, chunk("Hel")); text != "Hel" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("cut off:", text, err)
	}
	text, err := complete(t, chunk("Hel")+`data: {"error":{"code":"provider_failed","message":"m","request_id":"r"}}`+"\n\n")
	var e *Error
	if text != "Hel" || !errors.As(err, &e) || e.Code != "provider_failed" || e.RequestID != "r" {
		t.Error("failed:", text, err)
	}
}

// Whoever leaves a completion ends it: the provider must not go on at his expense.
func TestLeavingACompletionEndsIt(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	c, _, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, chunk("one"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	s, err := c.CreateChatCompletion(t.Context(), ChatCompletionRequest{Model: "echo-1"})
	if err != nil {
		t.Fatal(err)
	}
	for chunk, err := range s.Chunks() {
		if err != nil || chunk.Text() != "one" {
			t.Error(chunk, err)
		}
		break
	}
	<-left
}

func TestServerEvents(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                    "a|b",
		"data:a\r\n\r\ndata: b\r\r":                 "a|b",
		"\xef\xbb\xbfdata: a\n\n":                   "a",
		"event: x\ndata: 1\ndata: 2\nid: 3\n\n":     "x:1\n2",
		": nothing\n\nevent: x\n\ndata: a\n\n":      "a",
		"data: cut off\n":                           "",
		"data\n\n":                                  "",
		"data: {\"text\":\"a: b\"}\n\ndata: [DONE]": `{"text":"a: b"}`,
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body))} {
			var got []string
			for e, err := range ServerEvents(r) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Name != "" {
					e.Data = e.Name + ":" + e.Data
				}
				got = append(got, e.Data)
			}
			if text := strings.Join(got, "|"); text != want {
				t.Errorf("%q %s: %q, want %q", body, name, text, want)
			}
		}
	}
}

// One event that does not end is given up, as one line and as many.
func TestAnEventWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"line": "data: " + strings.Repeat("x", 5<<20), "lines": strings.Repeat("data: "+strings.Repeat("x", 1<<10)+"\n", 5<<10)} {
		var last error
		for _, err := range ServerEvents(strings.NewReader(body)) {
			last = err
		}
		if last == nil {
			t.Error(name)
		}
	}
}

func FuzzServerEvents(f *testing.F) {
	f.Add("data: a\r\ndata: b\r\r\nevent: x\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		read := func(r io.Reader) (all []ServerEvent) {
			for e, err := range ServerEvents(r) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, e)
			}
			return all
		}
		whole, bytes := read(strings.NewReader(body)), read(iotest.OneByteReader(strings.NewReader(body)))
		if len(whole) != len(bytes) {
			t.Fatalf("%q: %v whole, %v byte by byte", body, whole, bytes)
		}
		for i := range whole {
			if whole[i] != bytes[i] {
				t.Fatalf("%q: %v whole, %v byte by byte", body, whole[i], bytes[i])
			}
		}
	})
}
