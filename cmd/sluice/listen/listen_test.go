package listen_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/cmd/sluice/listen"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// gateway answers pages in their order, and then waits; errors stand for what it cannot.
type gateway struct {
	answers []any // webhooks.Listened or error
	asked   []string
}

var errFinal = errors.New("refused")

func (g *gateway) next(ctx context.Context, cursor string) (webhooks.Listened, error) {
	g.asked = append(g.asked, cursor)
	if len(g.answers) == 0 {
		<-ctx.Done()
		return webhooks.Listened{}, ctx.Err()
	}
	a := g.answers[0]
	g.answers = g.answers[1:]
	if err, ok := a.(error); ok {
		return webhooks.Listened{}, err
	}
	return a.(webhooks.Listened), nil
}

func page(cursor string, ids ...string) webhooks.Listened {
	p := webhooks.Listened{Cursor: cursor}
	for _, id := range ids {
		p.Data = append(p.Data, webhooks.Heard{ID: id, Event: "stream.started", Body: `{"id":"` + id + `"}`})
	}
	return p
}

// What breaks on the way loses no event and sends none twice; each is signed.
func TestEventsArePassedOn(t *testing.T) {
	t.Parallel()
	secret := listen.Secret("slk_1")
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := signature.Verify([]byte(secret), r.Header, body, time.Now()); err != nil || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/hooks" {
			t.Errorf("%v: %s %v", err, r.URL.Path, r.Header)
		}
		got = append(got, string(body))
		if strings.Contains(string(body), "e2") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(receiver.Close)
	g := &gateway{answers: []any{errors.New("not there yet"), page("c1"), page("c2", "e1", "e2"), io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, page("c3", "e3")}}
	ctx, cancel := context.WithCancel(t.Context())
	var results []listen.Result
	ready, lost, pauses := 0, 0, []time.Duration{}
	err := listen.Run(ctx, listen.Config{
		Next: g.next, Final: func(err error) bool { return errors.Is(err, errFinal) }, To: receiver.URL + "/hooks", Secret: []byte(secret),
		Ready: func() { ready++ }, Lost: func(error) { lost++ },
		Heard: func(r listen.Result) {
			if results = append(results, r); r.ID == "e3" {
				cancel()
			}
		},
		Pause: func(_ context.Context, d time.Duration) bool { pauses = append(pauses, d); return true },
	})
	if err != nil || ready != 1 || lost != 2 || len(pauses) != 3 || pauses[2] != 2*pauses[1] {
		t.Errorf("%v, ready %d, lost %d, pauses %v", err, ready, lost, pauses)
	}
	if strings.Join(got, "") != `{"id":"e1"}{"id":"e2"}{"id":"e3"}` || strings.Join(g.asked[:6], ",") != ",,c1,c2,c2,c2" {
		t.Errorf("sent %v, asked %q", got, g.asked)
	}
	if len(results) != 3 || results[0].Status != 200 || results[1].Status != 500 || results[0].Late() {
		t.Errorf("%+v", results)
	}
}

func TestWhatIsSignedStaysSo(t *testing.T) {
	t.Parallel()
	signed := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed <- r.Header.Get("X-Service-Signature")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(receiver.Close)
	p := page("c2", "e1")
	p.Data[0].Headers = map[string]string{"X-Service-Signature": "by the subscription"}
	ctx, cancel := context.WithCancel(t.Context())
	err := listen.Run(ctx, listen.Config{Next: (&gateway{answers: []any{page("c1"), p}}).next, To: receiver.URL, Ready: func() {}, Heard: func(r listen.Result) {
		if r.Status != http.StatusFound {
			t.Errorf("%+v", r)
		}
		cancel()
	}})
	if got := <-signed; err != nil || got != "by the subscription" {
		t.Error(err, got)
	}
}

func TestAReceiverThatIsNotThere(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := listen.Run(ctx, listen.Config{Next: (&gateway{answers: []any{page("c1"), page("c2", "e1")}}).next, To: gone.URL, Ready: func() {}, Heard: func(r listen.Result) {
		if r.Failure == nil || r.Status != 0 || strings.Contains(r.Failure.Error(), "Post ") {
			t.Errorf("%+v", r)
		}
		cancel()
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestWhatTheGatewayRefusesEndsIt(t *testing.T) {
	t.Parallel()
	err := listen.Run(t.Context(), listen.Config{Next: (&gateway{answers: []any{errFinal}}).next, Final: func(err error) bool { return errors.Is(err, errFinal) }})
	if !errors.Is(err, errFinal) {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "3000": "http://localhost:3000", "localhost:3000/hooks": "http://localhost:3000/hooks", "https://a.test/x": "https://a.test/x", "127.0.0.1:1": "http://127.0.0.1:1",
	} {
		if got, err := listen.Address(given); err != nil || got != want {
			t.Errorf("%q: %q %v", given, got, err)
		}
	}
	for _, given := range []string{"ftp://a", "http://", "://"} {
		if got, err := listen.Address(given); err == nil {
			t.Errorf("%q: %q", given, got)
		}
	}
}

func TestSecretsOfKeys(t *testing.T) {
	t.Parallel()
	a, b := listen.Secret("slk_a"), listen.Secret("slk_b")
	if a == b || a != listen.Secret("slk_a") || len(a) != len("whsec_")+32 {
		t.Error(a, b)
	}
}
