package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// model is a provider of ours behind the stack: it keeps the bodies that it is
// asked with, and answers as the test says.
type model struct {
	*httptest.Server
	asked  chan string
	answer func(w http.ResponseWriter, r *http.Request)
	mu     sync.Mutex
}

func newModel() *model {
	m := &model{asked: make(chan string, 100)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case m.asked <- string(body):
		default: // a test that asks so much does not look
		}
		m.mu.Lock()
		answer := m.answer
		m.mu.Unlock()
		answer(w, r)
	}))
	return m
}

// answers sets what the model does from now on.
func (m *model) answers(f func(w http.ResponseWriter, r *http.Request)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

// says writes one event.
func says(w http.ResponseWriter, data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: "+data+"\n\n")
	_ = http.NewResponseController(w).Flush()
}

const (
	chunkHead = `{"id":"c1","object":"chat.completion.chunk","created":5,"model":"m","choices":[`
	chunkText = chunkHead + `{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}`
	chunkStop = chunkHead + `{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chunkUsed = chunkHead + `],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
)

func completes(w http.ResponseWriter, _ *http.Request) {
	for _, e := range []string{chunkText, chunkStop, chunkUsed, "[DONE]"} {
		says(w, e)
	}
}

// chatStack is a stack whose model is ours, and whose edge has one more route:
// with the caps, straight to the model, so that nothing but the edge can have
// applied them. Tests that use it take turns.
func chatStack(t *testing.T) (*stack, *model) {
	t.Helper()
	m := newModel()
	t.Cleanup(m.Close)
	s := own(t, map[string]string{"SLUICE_MODEL_UPSTREAM": m.URL, "SLUICE_CHAT_ECHO": "on"})
	b, err := os.ReadFile(filepath.Join("..", "deploy", "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(b), "\nproducts:\n", "\nproducts:\n  - {name: bare-model, upstreams: [{address: \""+strings.TrimPrefix(m.URL, "http://")+"\"}]}\n", 1) +
		"\n  - {name: bare-model, listener: runtime, methods: [POST], path: /v1/bare, auth: [key], product: bare-model, streaming: true, body_limit: 10485760, chat_caps: true}\n"
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := sluice(t, s.cli(), "apply", "-f", file); status != 0 {
		t.Fatal(status, out, errs)
	}
	m.answers(completes)
	eventually(t, "the new route is there", func() error {
		return s.chat("/v1/bare", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	})
	return s, m
}

// chat asks once and reports anything but 200.
func (s *stack) chat(path, body string) error {
	r, err := try("POST", s.dev["SLUICE_RUNTIME_URL"]+path, s.dev["SLUICE_API_KEY"], json.RawMessage(body))
	if err == nil && r.StatusCode != http.StatusOK {
		return &unexpected{r}
	}
	return err
}

type unexpected struct{ response }

func (u *unexpected) Error() string { return u.Status + " " + u.body }

func TestChat(t *testing.T) {
	s, m := chatStack(t)
	for name, test := range map[string]func(*testing.T, *stack, *model){
		"caps at the edge": capsAtTheEdge, "bodies of hostile shapes": hostileShapes, "refusals at the edge": refusalsAtTheEdge, "a whole stream": wholeStream,
		"chunks as they come": chunksAsTheyCome, "a client that leaves": clientThatLeaves, "errors of the provider": providerErrors,
		"the other routes": otherRoutes, "keys stay here": keysStayHere, "a token budget": budgetHolds, "agents": agents, "binary bodies": binaryBodies,
		"callers": callers, "a repetition": repetition,
	} {
		for len(m.asked) > 0 {
			<-m.asked
		}
		m.answers(completes)
		t.Run(name, func(t *testing.T) { test(t, s, m) })
	}
}

func capsAtTheEdge(t *testing.T, s *stack, m *model) {
	long := strings.Repeat("é", 201)
	in := `{ "model":"m","x":1.50,"messages":[{"role":"user","content":"<system-reminder>available_skills</system-reminder>\u00e9"}],` +
		`"stream":false,"max_completion_tokens":99999,"tools":[{"type":"function","function":{"name":"f","description":"` + long + `"}}]}`
	r := call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/bare", s.dev["SLUICE_API_KEY"], json.RawMessage(in))
	wantStatus(t, r, 200)
	got := <-m.asked
	for _, want := range []string{`"stream":true`, `"max_completion_tokens":4096`, `"max_tokens":1024`, `"include_usage":true`, `"` + strings.Repeat("é", 200) + `"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if strings.Contains(got, "available_skills") {
		t.Errorf("the reminder came through: %s", got)
	}
	r = call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/bare", s.dev["SLUICE_API_KEY"], json.RawMessage(in), "x-service-strip-tools", "1")
	wantStatus(t, r, 200)
	if got := <-m.asked; strings.Contains(got, "tools") {
		t.Errorf("tools are left: %s", got)
	}
}

// hostileShapes are bodies that a parser which goes over them again and again
// would take hours for: each is answered, at the edge and by the runtime.
func hostileShapes(t *testing.T, s *stack, m *model) {
	const hello = `"model":"m","messages":[{"role":"user","content":"hi"}]`
	for _, path := range []string{"/v1/bare", "/v1/chat/completions"} {
		for name, c := range map[string]struct {
			body   string
			status int
			field  string
		}{
			"blanks behind":       {`{` + hello + `}` + strings.Repeat(" ", 4<<20), 200, ""},
			"blanks before":       {strings.Repeat("\n", 4<<20) + `{` + hello + `}`, 200, ""},
			"blanks inside":       {`{` + strings.Repeat(" ", 4<<20) + hello + `}`, 200, ""},
			"1,000 tools":         {`{` + hello + `,"tools":[` + strings.Repeat(`{},`, 999) + `{}]}`, 400, "tools"},
			"a message too many":  {`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"hi"},`, 2048) + `{"role":"user","content":"hi"}]}`, 400, "messages"},
			"bad messages":        {`{"model":"m","messages":[` + strings.Repeat("0,", 1<<20) + `0]}`, 400, "messages[19]"},
			"bytes that are none": {`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("\xff", 4<<20) + `"}]}`, 400, "body"},
		} {
			req, err := http.NewRequest(http.MethodPost, s.dev["SLUICE_RUNTIME_URL"]+path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(path, name, err)
			}
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != c.status || c.field != "" && !strings.Contains(string(b), `"field":"`+c.field+`"`) || len(b) > 16<<10 {
				t.Errorf("%s, %s: %d, %d bytes: %.300s", path, name, res.StatusCode, len(b), b)
			}
		}
	}
	for len(m.asked) > 0 {
		<-m.asked
	}
}

// refusalsAtTheEdge sends its bodies raw, as the helper's encoder would refuse
// them.
func refusalsAtTheEdge(t *testing.T, s *stack, m *model) {
	for _, path := range []string{"/v1/bare", "/v1/chat/completions"} {
		for name, c := range map[string]struct {
			body   string
			length int64
			status int
			code   string
		}{
			"no JSON":   {`{"model":`, 0, 400, "invalid_request"},
			"no model":  {`{"messages":[]}`, 0, 400, "invalid_request"},
			"no body":   {``, 0, 400, "invalid_request"},
			"too large": {``, 10<<20 + 1, 413, "request_too_large"},
		} {
			var body io.Reader = strings.NewReader(c.body)
			if c.length > 0 {
				pipe, never := io.Pipe()
				defer never.Close()
				body = pipe
			}
			req, err := http.NewRequest("POST", s.dev["SLUICE_RUNTIME_URL"]+path, body)
			if err != nil {
				t.Fatal(err)
			}
			if c.length > 0 {
				req.ContentLength = c.length
			}
			req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(path, name, err)
			}
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			wantError(t, response{Response: res, body: string(b)}, c.status, c.code)
			if res.Header.Get("X-RateLimit-Limit") == "" {
				t.Errorf("%s, %s: no rate-limit headers", path, name)
			}
		}
	}
	if len(m.asked) > 0 {
		t.Errorf("the provider was asked %s", <-m.asked)
	}
}

func wholeStream(t *testing.T, s *stack, m *model) {
	r := call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions", s.dev["SLUICE_API_KEY"],
		json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	wantStatus(t, r, 200)
	usage := `{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}`
	want := "data: " + chunkText + "\n\ndata: " + chunkStop[:len(chunkStop)-1] + `,"x-service-usage":` + usage + "}\n\ndata: " + chunkUsed + "\n\ndata: [DONE]\n\n"
	if r.body != want || r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-RateLimit-Limit") == "" {
		t.Errorf("%v\n%s\nwant\n%s", r.Header, r.body, want)
	}
}

// open starts a completion and returns its events line by line.
func (s *stack) open(ctx context.Context, t *testing.T) *bufio.Scanner {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.dev["SLUICE_API_KEY"])
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		t.Fatalf("%s: %s", res.Status, b)
	}
	return bufio.NewScanner(res.Body)
}

// chunksAsTheyCome has a model that goes on only once the client has the chunk
// before.
func chunksAsTheyCome(t *testing.T, s *stack, m *model) {
	next := make(chan struct{})
	m.answers(func(w http.ResponseWriter, r *http.Request) {
		for range 5 {
			says(w, chunkText)
			<-next
		}
		completes(w, r)
	})
	events := s.open(t.Context(), t)
	for range 5 {
		for events.Scan() && events.Text() != "data: "+chunkText {
		}
		if events.Err() != nil || events.Text() == "" {
			t.Fatalf("the stream ended: %v", events.Err())
		}
		next <- struct{}{}
	}
}

// clientThatLeaves waits for the model to see the end of its stream.
func clientThatLeaves(t *testing.T, s *stack, m *model) {
	over := make(chan struct{})
	m.answers(func(w http.ResponseWriter, r *http.Request) {
		says(w, chunkText)
		<-r.Context().Done()
		close(over)
	})
	ctx, leave := context.WithCancel(t.Context())
	events := s.open(ctx, t)
	events.Scan()
	leave()
	<-over
}

func providerErrors(t *testing.T, s *stack, m *model) {
	for status, want := range map[int]struct {
		status int
		code   string
	}{400: {400, "invalid_request"}, 429: {429, "rate_limit_exceeded"}, 500: {502, "bad_gateway"}, 503: {503, "service_unavailable"}} {
		m.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		wantError(t, call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions", s.dev["SLUICE_API_KEY"],
			json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)), want.status, want.code)
	}
}

// keysStayHere asks through the edge and past it: the provider never sees the
// caller's key, and past the edge nobody is served, with any key.
func keysStayHere(t *testing.T, s *stack, m *model) {
	const path, ask = "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	seen := make(chan string, 10)
	m.answers(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		completes(w, r)
	})
	if err := s.chat(path, ask); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "" {
		t.Error("the provider saw a credential of the caller's")
	}
	for _, key := range []string{"anything", s.dev["SLUICE_API_KEY"]} {
		for _, model := range []string{"m", "echo-1"} {
			r := call(t, "POST", "http://"+s.env["SLUICE_RUNTIME_LISTEN"]+path, key, json.RawMessage(strings.Replace(ask, `"m"`, `"`+model+`"`, 1)))
			if r.StatusCode != http.StatusUnauthorized || !strings.Contains(r.body, "authentication_required") {
				t.Errorf("%s past the edge: %d %s", model, r.StatusCode, r.body)
			}
		}
	}
	if len(seen) > 0 {
		t.Error("the provider was asked past the edge")
	}
}

func otherRoutes(t *testing.T, s *stack, m *model) {
	m.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`) })
	base, key := s.dev["SLUICE_RUNTIME_URL"], s.dev["SLUICE_API_KEY"]
	for _, c := range []struct {
		method, path, key, want string
		status                  int
	}{
		{"GET", "/", "", "curl -N " + base, 200},
		{"GET", "/openapi.json", "", `"openapi": "3.1.0"`, 200},
		{"GET", "/mcp", "", `"serverInfo"`, 200},
		{"GET", "/v1/models", key, `{"id":"m","object":"model","owned_by":"upstream"}`, 200},
		{"GET", "/v1/models", "", `"authentication_required"`, 401},
		{"POST", "/v1/chat/completions", "", `"authentication_required"`, 401},
		{"POST", "/v1/transcode", "", `"authentication_required"`, 401},
	} {
		r := call(t, c.method, base+c.path, c.key, nil)
		if r.StatusCode != c.status || !strings.Contains(r.body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
}

// binaryBodies go through the runtime to the gateway: a wrong key is refused
// there, and what the product says comes back.
func binaryBodies(t *testing.T, s *stack, _ *model) {
	for _, path := range []string{"/v1/transcribe", "/v1/captions", "/v1/voice", "/v1/vision", "/v1/render", "/v1/transcode", "/v1/mux"} {
		direct := call(t, "POST", s.url(path), s.dev["SLUICE_API_KEY"], json.RawMessage(`"x"`))
		through := call(t, "POST", s.dev["SLUICE_RUNTIME_URL"]+path, s.dev["SLUICE_API_KEY"], json.RawMessage(`"x"`))
		if through.StatusCode != direct.StatusCode || through.StatusCode == http.StatusNotFound || through.StatusCode == http.StatusBadGateway {
			t.Errorf("%s: %d through the runtime, %d at the gateway: %s", path, through.StatusCode, direct.StatusCode, through.body)
		}
	}
}
