// Package stripetest stands in for Stripe in tests. Every request goes to stripe-mock, which
// Stripe publishes and which holds it against Stripe's own description of its API; what it
// refuses is refused. It remembers nothing, so what customers, payment methods and payments
// are by then is kept here, by what Stripe's documentation says of them.
package stripetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe"
	"sluice.dev/sluice/platform/outbound"
)

// Key is the secret key that a Server takes.
const Key = "sk_test_123"

// Server is a Stripe.
type Server struct {
	URL string

	t    testing.TB
	mock string // stripe-mock's address

	mu      sync.Mutex
	made    int
	keys    map[string]string     // names of what was made, by idempotency key
	methods map[string]string     // customers, by payment method; empty: detached
	intents map[string]url.Values // payments: their fields, and status
	charges map[string]int        // charges that went through, by payment
	faults  []Fault
	seen    []string
	carried func()
}

// Fault is something that goes wrong once with a request whose path ends in Path.
type Fault struct {
	Path    string
	Decline string // the card is declined, with this code
	Status  int    // answered in place of the real answer; 0: none
	After   bool   // the request is carried out, and the answer is lost
}

// build builds the stripe-mock that e2e/stripemock pins into dir.
func build(dir string) error {
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir+"/", "github.com/stripe/stripe-mock")
	cmd.Dir = filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), "e2e", "stripemock")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// shared is the one stripe-mock of a test binary, which has two hundred megabytes and
// remembers nothing: it runs while there are users.
var shared struct {
	sync.Mutex
	users   int
	cmd     *exec.Cmd
	dir     string // of the program
	address string
}

// mock returns the address of stripe-mock, which runs until the test ends.
func mock(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		start(t)
	}
	shared.users++
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.users--; shared.users == 0 {
			_ = shared.cmd.Process.Kill()
			_ = shared.cmd.Wait()
			_ = os.RemoveAll(shared.dir)
		}
	})
	return shared.address
}

// start starts stripe-mock and waits until it listens.
func start(t testing.TB) {
	t.Helper()
	dir, err := os.MkdirTemp("", "stripe-mock")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Without an address for HTTPS it takes a fixed port, and ends if another has it.
	shared.dir, shared.cmd = dir, exec.Command(filepath.Join(dir, "stripe-mock"), "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	said, err := shared.cmd.StdoutPipe()
	if err == nil {
		err = shared.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() { // it loads Stripe's description first
		if _, address, ok := strings.Cut(lines.Text(), "Listening for HTTP at address: "); ok {
			shared.address = "http://" + address
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return
		}
	}
	t.Fatal("stripe-mock ended", lines.Err())
}

// New starts a Server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, mock: mock(t), keys: map[string]string{}, methods: map[string]string{},
		intents: map[string]url.Values{}, charges: map[string]int{}}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.URL = front.URL
	return s
}

// Client is a provider that uses s.
func (s *Server) Client() stripe.Stripe {
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	return stripe.New(stripe.Config{Key: Key, PublishableKey: "pk_test_123", URL: s.URL, Client: outbound.New(outbound.Config{Allow: local, MaxBody: stripe.MaxAnswer})})
}

// Fail has faults happen, in their order.
func (s *Server) Fail(f ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f...)
}

// Charges is how often money was taken, and Seen which requests there were.
func (s *Server) Charges() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.charges {
		n += times
	}
	return n
}

// Seen are the requests that there were.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.seen...)
}

// Carried has f called after each request that was carried out, before it is answered.
func (s *Server) Carried(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carried = f
}

// SetStatus makes every payment be so far.
func (s *Server) SetStatus(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.intents {
		in.Set("status", status)
	}
}

// Forget drops the idempotency keys, as Stripe does after a day.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = map[string]string{}
}

// ServeHTTP has stripe-mock judge a request, and answers by what is remembered.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	ask, err := http.NewRequest(r.Method, s.mock+r.URL.String(), bytes.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	ask.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(ask)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	if resp.StatusCode != http.StatusOK {
		s.t.Errorf("stripe-mock refuses %s %s %s: %d %s", r.Method, r.URL, body, resp.StatusCode, answer)
		reply(w, resp.StatusCode, answer)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		s.t.Error(err)
	}
	fault := s.fault(r.URL.Path)
	if fault.Status != 0 && !fault.After {
		reply(w, fault.Status, []byte(`{"error":{"type":"api_error"}}`))
		return
	}
	status, out := s.do(r.Method, strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/"), form, r.Header.Get("Idempotency-Key"), answer, fault)
	if s.carried != nil {
		s.carried()
	}
	if fault.After {
		status, out = fault.Status, []byte(`{"error":{"type":"api_error"}}`)
	}
	reply(w, status, out)
}

func reply(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// fault takes the next fault, if it is of path.
func (s *Server) fault(path string) (f Fault) {
	if len(s.faults) == 0 || !strings.HasSuffix(path, s.faults[0].Path) {
		return f
	}
	f, s.faults = s.faults[0], s.faults[1:]
	return f
}

// failure is the body of an answer that is none.
func failure(kind, code, decline string) []byte {
	return fmt.Appendf(nil, `{"error":{"type":%q,"code":%q,"decline_code":%q,"message":"declined, with a secret of %s"}}`, kind, code, decline, Key)
}

// do carries out a request that stripe-mock has found right, whose answer is its example.
func (s *Server) do(method string, path []string, form url.Values, key string, example []byte, f Fault) (int, []byte) {
	name := ""
	if len(path) > 1 {
		name = path[1]
	}
	switch {
	case path[0] == "customers":
		return http.StatusOK, with(example, map[string]any{"id": s.name("cus_", key)})
	case path[0] == "setup_intents":
		return http.StatusOK, example
	case path[0] == "payment_methods":
		return s.method(method, name, path[len(path)-1], form, example)
	case path[0] == "payment_intents" && name == "":
		id := s.name("pi_", key)
		if s.intents[id] == nil {
			form.Set("status", "requires_payment_method")
			s.intents[id] = form
		}
		return http.StatusOK, s.intent(id, example)
	case path[0] == "payment_intents":
		if s.intents[name] == nil {
			return http.StatusNotFound, failure("invalid_request_error", "resource_missing", "")
		}
		if path[len(path)-1] == "confirm" {
			return s.confirm(name, form, example, f)
		}
		return http.StatusOK, s.intent(name, example)
	}
	s.t.Errorf("a call that is not expected: %s %v", method, path)
	return http.StatusNotFound, nil
}

// name is that of something new, or of what was made with the same key.
func (s *Server) name(prefix, key string) string {
	if key != "" && s.keys[key] != "" {
		return s.keys[key]
	}
	s.made++
	id := fmt.Sprint(prefix, "test", s.made)
	if key != "" {
		s.keys[key] = id
	}
	return id
}

// method attaches, detaches and shows a payment method. pm_missing is none, and one that was
// detached cannot be attached again.
func (s *Server) method(method, name, verb string, form url.Values, example []byte) (int, []byte) {
	customer, known := s.methods[name]
	switch {
	case name == "pm_missing":
		return http.StatusNotFound, failure("invalid_request_error", "resource_missing", "")
	case method == http.MethodPost && verb == "attach":
		if known {
			return http.StatusBadRequest, failure("invalid_request_error", "payment_method_already_attached", "")
		}
		customer = form.Get("customer")
		s.methods[name] = customer
	case method == http.MethodPost && customer == "":
		return http.StatusBadRequest, failure("invalid_request_error", "payment_method_not_attached", "")
	case method == http.MethodPost:
		s.methods[name], customer = "", ""
	}
	return http.StatusOK, with(example, map[string]any{"id": name, "customer": customer, "type": "card",
		"card": map[string]any{"brand": "visa", "last4": "4242", "exp_month": 8, "exp_year": 2030}})
}

// confirm charges a payment to a payment method that its customer has, once.
func (s *Server) confirm(id string, form url.Values, example []byte, f Fault) (int, []byte) {
	in := s.intents[id]
	switch {
	case in.Get("status") == "succeeded" || in.Get("status") == "canceled":
		return http.StatusBadRequest, failure("invalid_request_error", "payment_intent_unexpected_state", "")
	case s.methods[form.Get("payment_method")] != in.Get("customer"):
		s.t.Errorf("%s of %s is charged to %s of another", id, in.Get("customer"), form.Get("payment_method"))
		return http.StatusBadRequest, failure("invalid_request_error", "resource_missing", "")
	case f.Decline != "":
		in.Set("status", "requires_payment_method")
		in.Set("decline", f.Decline)
		return http.StatusPaymentRequired, failure("card_error", "card_declined", f.Decline)
	}
	in.Set("status", "succeeded")
	s.charges[id]++
	return http.StatusOK, s.intent(id, example)
}

// intent shows a payment.
func (s *Server) intent(id string, example []byte) []byte {
	in := s.intents[id]
	fields := map[string]any{"id": id, "status": in.Get("status")}
	if code := in.Get("decline"); code != "" {
		fields["last_payment_error"] = map[string]any{"code": "card_declined", "decline_code": code}
	}
	return with(example, fields)
}

// with is an example with some fields of its own.
func with(example []byte, fields map[string]any) []byte {
	var all map[string]any
	if json.Unmarshal(example, &all) != nil {
		return example
	}
	for name, v := range fields {
		all[name] = v
	}
	out, _ := json.Marshal(all)
	return out
}
