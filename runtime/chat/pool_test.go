package chat_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/runtime/chat"
)

// fake is a provider that only says who it is, or fails.
type fake struct {
	name string
	err  error
}

func (f *fake) Credential(c chat.Caller) (string, error) { return c.Bearer, nil }

func (f *fake) Stream(context.Context, chat.Request) (chat.Stream, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f, nil
}

func (f *fake) Next() ([]byte, error) { return []byte(f.name), nil }
func (f *fake) Ready() bool           { return false }
func (f *fake) Close() error          { return nil }

// asks opens n streams for a model and returns who answered.
func asks(t *testing.T, p *chat.Pool, model string, n int) (who string) {
	t.Helper()
	for range n {
		a, err := p.Open(t.Context(), chat.Request{Model: model})
		if err != nil {
			return who + "!" + string(apierror.Code(err))
		}
		who += string(a.First)
	}
	return who
}

func TestModelsAreRouted(t *testing.T) {
	t.Parallel()
	p := chat.NewPool([]chat.Target{
		{Provider: &fake{name: "a"}, Models: []string{"gpt-*"}},
		{Provider: &fake{name: "b"}, Models: []string{"llama", "gpt-5"}, Weight: 1},
		{Provider: &fake{name: "c"}},
	}, nil)
	for model, want := range map[string]string{"gpt-4": "aa", "llama": "bb", "gpt-5": "ab", "other": "cc", "gpt": "cc", "llama-3": "cc"} {
		if got := asks(t, p, model, 2); got != want {
			t.Errorf("%s goes to %s, want %s", model, got, want)
		}
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	p := chat.NewPool([]chat.Target{{Provider: &fake{name: "a"}, Weight: 5}, {Provider: &fake{name: "b"}}, {Provider: &fake{name: "c"}}}, nil)
	if got := asks(t, p, "m", 14); got != "aabacaaaabacaa" {
		t.Errorf("turns: %s", got)
	}
}

func TestFailOver(t *testing.T) {
	t.Parallel()
	down := &apierror.Error{Code: decision.BadGateway}
	now := time.Unix(0, 0)
	a, b := &fake{name: "a", err: down}, &fake{name: "b"}
	p := chat.NewPool([]chat.Target{{Provider: a, Weight: 9}, {Provider: b}}, func() time.Time { return now })
	if got := asks(t, p, "m", 5); got != "bbbbb" {
		t.Errorf("with one down: %s", got)
	}
	a.err = nil
	if got := asks(t, p, "m", 3); got != "bbb" {
		t.Errorf("up again, but still resting: %s", got)
	}
	b.err = down
	if got := asks(t, p, "m", 1); got != "a" {
		t.Errorf("the one that rests is better than none: %s", got)
	}
	b.err = nil
	now = now.Add(time.Minute)
	if got := asks(t, p, "m", 2); got != "aa" {
		t.Errorf("after its rest: %s", got)
	}
	a.err, b.err = down, &apierror.Error{Code: decision.Unavailable}
	if got := asks(t, p, "m", 1); got != "!service_unavailable" && got != "!bad_gateway" {
		t.Errorf("with all down: %s", got)
	}
}

func TestFailOverForStreamsThatDoNotBegin(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]*provider{
		"500": newProvider(t, status(500, "")), "429": newProvider(t, status(429, "")), "empty": newProvider(t, events()),
		"an error first": newProvider(t, events(`{"error":{"message":"x"}}`)),
	} {
		good := newProvider(t, events(role, hel, stop, spent, done))
		rt := runtime(t, chat.Config{}, broken.target(t), good.target(t))
		if res := complete(t, post(t, rt.URL, ask).Body); res.text != "Hel" || len(broken.asked) != 1 || len(good.asked) != 1 {
			t.Errorf("%s: %q", name, res.text)
		}
	}
	gone := newProvider(t, events())
	target := gone.target(t)
	gone.Close()
	rt := runtime(t, chat.Config{}, target, newProvider(t, events(role, hel, stop, spent, done)).target(t))
	if res := complete(t, post(t, rt.URL, ask).Body); res.text != "Hel" {
		t.Errorf("nobody listens: %q", res.text)
	}
}

func TestRefusalsAreNotTriedElsewhere(t *testing.T) {
	t.Parallel()
	bad, other := newProvider(t, status(400, `{"error":{"message":"bad image"}}`)), newProvider(t, events(stop, done))
	rt := runtime(t, chat.Config{}, bad.target(t), other.target(t))
	if resp := post(t, rt.URL, ask); resp.StatusCode != 400 || len(other.asked) != 0 {
		t.Errorf("%d, the other was asked %d times", resp.StatusCode, len(other.asked))
	}
}

func TestRefusalUnwraps(t *testing.T) {
	t.Parallel()
	if err := error(&chat.Refusal{Err: io.EOF}); !errors.Is(err, io.EOF) || err.Error() != io.EOF.Error() {
		t.Errorf("%v", err)
	}
}

// limited refuses one caller's key, as a provider does that has counted enough
// requests with it.
type limited struct {
	fake
	over string
}

func (l *limited) Stream(ctx context.Context, r chat.Request) (chat.Stream, error) {
	if r.Bearer == l.over {
		return nil, &apierror.Error{Code: decision.RateLimited}
	}
	return l.fake.Stream(ctx, r)
}

// A provider rests for the key that failed there, and for no other.
func TestAProviderRestsForOneCredential(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a := &limited{fake{name: "a"}, "greedy"}
	p := chat.NewPool([]chat.Target{{Provider: a, Weight: 99}, {Provider: &fake{name: "b"}}}, func() time.Time { return now })
	ask := func(bearer string, n int) (who string) {
		for range n {
			got, err := p.Open(t.Context(), chat.Request{Model: "m", Caller: chat.Caller{Bearer: bearer}})
			if err != nil {
				t.Fatal(err)
			}
			who += string(got.First)
		}
		return who
	}
	if got := ask("greedy", 5); got != "bbbbb" {
		t.Errorf("whose key is refused goes to %s", got)
	}
	if got := ask("modest", 3); got != "aaa" {
		t.Errorf("another goes to %s", got)
	}
	a.over = ""
	if got := ask("greedy", 2); got != "bb" {
		t.Errorf("during the rest: %s", got)
	}
	now = now.Add(time.Minute)
	if got := ask("greedy", 1); got != "a" {
		t.Errorf("after the rest: %s", got)
	}
}

// What is known of credentials is bounded, however many fail.
func TestManyCredentialsFail(t *testing.T) {
	t.Parallel()
	down := &fake{err: &apierror.Error{Code: decision.RateLimited}}
	p := chat.NewPool([]chat.Target{{Provider: down}}, nil)
	for i := range 25_000 {
		if _, err := p.Open(t.Context(), chat.Request{Model: "m", Caller: chat.Caller{Bearer: strconv.Itoa(i)}}); err == nil {
			t.Fatal("answered")
		}
	}
	if n := p.Known(); n > 10_001 {
		t.Errorf("%d credentials are known", n)
	}
}
