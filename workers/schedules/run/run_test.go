package run

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/product"
)

// fakes is a store, a product and a receiver in one.
type fakes struct {
	attempt *schedules.Attempt
	due     time.Time
	down    int // writes that fail before one succeeds

	actErr  error
	answer  outbound.Result
	callErr error

	acts, calls int
	sent        outbound.Request
	retryAt     time.Time
	retryLogs   []string
	kept        *schedules.Result
	outcome     *schedules.Outcome
}

var errDown = errors.New("the database is away")

func (f *fakes) Begin(context.Context, string) (*schedules.Attempt, time.Time, error) {
	return f.attempt, f.due, nil
}

func (f *fakes) write() error {
	if f.down > 0 {
		f.down--
		return errDown
	}
	return nil
}

func (f *fakes) Retry(_ context.Context, _ schedules.Attempt, at time.Time, kept *schedules.Result, logs []string) error {
	f.retryAt, f.kept, f.retryLogs = at, kept, logs
	return f.write()
}

func (f *fakes) Postpone(context.Context, int64, string, time.Time) error { return nil }

func (f *fakes) Finish(_ context.Context, _ schedules.Attempt, o schedules.Outcome) error {
	f.outcome = &o
	return f.write()
}

func (f *fakes) Act(_ context.Context, _ product.Caller, a definition.Action) (product.Outcome, error) {
	f.acts++
	return product.Outcome{StreamID: a.StreamID, Action: "started", Message: "Stream started"}, f.actErr
}

func (f *fakes) Do(_ context.Context, req outbound.Request) (outbound.Result, error) {
	f.calls++
	f.sent = req
	return f.answer, f.callErr
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// attemptOf is the first attempt of a schedule with the given parts.
func attemptOf(kind string, a *definition.Action, w *definition.Webhook) *schedules.Attempt {
	return &schedules.Attempt{Execution: "exec_1", Schedule: "schedule_1", Account: "acct_1", Number: 1,
		Definition: definition.Definition{Name: "n", Type: kind, Action: a, Webhook: w}}
}

var (
	start = &definition.Action{StreamID: "strm_1", Action: "start"}
	hook  = &definition.Webhook{URL: "https://example.com/secret-path", Payload: []byte(`{"eventName":"go"}`)}
	ok    = outbound.Result{Status: 200, Duration: 12 * time.Millisecond}
)

// once makes one attempt.
func once(t *testing.T, f *fakes) time.Duration {
	t.Helper()
	r := Runner{Store: f, Streams: f, Webhook: f, Now: func() time.Time { return noon }, Jitter: func() float64 { return 1 },
		Log: slog.New(slog.DiscardHandler)}
	again, err := r.Run(t.Context(), "exec_1")
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestWhatIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempt     *schedules.Attempt
		acts, calls int
		message     string
		event       string
	}{
		"a stream action":             {attemptOf("stream_start", start, nil), 1, 0, "Stream started", ""},
		"a webhook":                   {attemptOf("webhook", nil, hook), 0, 1, "Webhook called", ""},
		"an event":                    {attemptOf("custom", nil, nil), 0, 0, "Event emitted", "schedule.custom"},
		"an action and its webhook":   {attemptOf("stream_start", start, hook), 1, 1, "Stream started; Webhook called", ""},
		"everything":                  {attemptOf("custom", start, hook), 1, 1, "Stream started; Webhook called; Event emitted", "schedule.custom"},
		"an event without an address": {attemptOf("custom", nil, &definition.Webhook{Payload: []byte(`{}`)}), 0, 0, "Event emitted", "schedule.custom"},
	} {
		f := &fakes{attempt: c.attempt, answer: ok}
		if again := once(t, f); again != 0 {
			t.Errorf("%s: again in %v", name, again)
		}
		event := ""
		if f.outcome.Event != nil {
			event = f.outcome.Event.Type
		}
		if f.acts != c.acts || f.calls != c.calls || f.outcome.Status != schedules.Success || f.outcome.Result.Message != c.message || event != c.event {
			t.Errorf("%s: %d actions, %d calls, %+v, event %q", name, f.acts, f.calls, f.outcome, event)
		}
	}
}

func TestFailuresAndWhatFollows(t *testing.T) {
	t.Parallel()
	refused := apierror.Errorf(decision.Conflict, "It is live.")
	for name, c := range map[string]struct {
		attempt *schedules.Attempt
		actErr  error
		answer  outbound.Result
		callErr error
		again   time.Duration
		code    decision.Code
		message string
	}{
		"the product refuses": {attempt: attemptOf("stream_start", start, hook), actErr: refused, code: decision.Conflict, message: "It is live."},
		"the product names fields": {attempt: attemptOf("stream_start", start, nil), code: decision.Transcode002,
			actErr:  &apierror.Error{Code: decision.Transcode002, Message: "No.", Details: []decision.Detail{{Field: "settings.quality", Issue: "is not a known profile"}}},
			message: "No. settings.quality is not a known profile."},
		"the product is overloaded": {attempt: attemptOf("stream_start", start, nil), actErr: &apierror.Error{Code: decision.Unavailable}, again: 5500 * time.Millisecond},
		"an error of ours":          {attempt: attemptOf("stream_start", start, nil), actErr: errDown, again: 5500 * time.Millisecond},
		"the receiver fails":        {attempt: attemptOf("webhook", nil, hook), answer: outbound.Result{Status: 500}, again: 5500 * time.Millisecond},
		"the receiver redirects":    {attempt: attemptOf("webhook", nil, hook), answer: outbound.Result{Status: 302}, again: 5500 * time.Millisecond},
		"the receiver is gone":      {attempt: attemptOf("webhook", nil, hook), answer: outbound.Result{Status: 410}, code: decision.Webhook001, message: "The webhook answered 410."},
		"no answer": {attempt: attemptOf("webhook", nil, hook), callErr: &outbound.Failure{Reason: outbound.ReasonTimeout},
			again: 5500 * time.Millisecond},
		"a private address": {attempt: attemptOf("webhook", nil, hook), callErr: &outbound.Failure{Reason: outbound.ReasonAddress},
			code: decision.Webhook001, message: "The webhook call failed: the host leads to an address that is not allowed."},
	} {
		f := &fakes{attempt: c.attempt, actErr: c.actErr, answer: c.answer, callErr: c.callErr}
		if again := once(t, f); again != c.again {
			t.Errorf("%s: again in %v, want %v", name, again, c.again)
		}
		if c.again > 0 {
			if f.outcome != nil || !f.retryAt.Equal(noon.Add(c.again)) {
				t.Errorf("%s: outcome %+v, retry at %v", name, f.outcome, f.retryAt)
			}
			continue
		}
		if f.outcome.Status != schedules.Failed || f.outcome.Code != c.code || f.outcome.Result.Message != c.message || f.outcome.Event != nil {
			t.Errorf("%s: %+v", name, f.outcome)
		}
	}
}

func TestTheLastRetryIsTheLast(t *testing.T) {
	t.Parallel()
	f := &fakes{attempt: attemptOf("webhook", nil, hook), answer: outbound.Result{Status: 500}}
	f.attempt.Number, f.attempt.Failures = 4, 3
	if again := once(t, f); again != 0 || f.outcome.Status != schedules.Failed || f.outcome.Webhook.Status != 500 {
		t.Errorf("again in %v, %+v", again, f.outcome)
	}
}

func TestAnActionThatSucceededIsKept(t *testing.T) {
	t.Parallel()
	f := &fakes{attempt: attemptOf("stream_start", start, hook), answer: outbound.Result{Status: 500}}
	once(t, f)
	if f.kept == nil || f.kept.Action != "started" {
		t.Fatalf("kept %+v", f.kept)
	}
	f.attempt.Result, f.attempt.Number, f.attempt.Failures, f.answer = f.kept, 2, 1, ok
	once(t, f)
	if f.acts != 1 || f.calls != 2 || f.outcome.Result.Action != "started" {
		t.Errorf("%d actions, %d calls, %+v", f.acts, f.calls, f.outcome)
	}
}

func TestLogsTellAttemptsAndNoSecrets(t *testing.T) {
	t.Parallel()
	f := &fakes{attempt: attemptOf("webhook", nil, hook), callErr: &outbound.Failure{Reason: outbound.ReasonDNS, Cause: errors.New("lookup secret-host")}}
	f.attempt.Lost = true
	once(t, f)
	logs := strings.Join(f.retryLogs, "\n")
	for _, part := range []string{"2026-01-01T12:00:00.000Z attempt 1 started", "cut short", "could not be resolved", "trying again in 5.5s"} {
		if !strings.Contains(logs, part) {
			t.Errorf("%q is missing in\n%s", part, logs)
		}
	}
	if strings.Contains(logs, "secret") {
		t.Errorf("too much is told:\n%s", logs)
	}
}

func TestHeadersOfACall(t *testing.T) {
	t.Parallel()
	f := &fakes{answer: ok, attempt: attemptOf("webhook", nil, &definition.Webhook{URL: "https://example.com",
		Headers: map[string]string{"content-type": "text/plain", "idempotency-key": "mine", "X-A": "b"}})}
	once(t, f)
	want := http.Header{"Content-Type": {"text/plain"}, "Idempotency-Key": {"exec_1"}, "X-A": {"b"}, "X-Service-Execution-Id": {"exec_1"}}
	for name, values := range want {
		if !slices.Equal(f.sent.Header[name], values) {
			t.Errorf("%s is %q, want %q", name, f.sent.Header[name], values)
		}
	}
	if len(f.sent.Header) != len(want) || string(f.sent.Body) != "{}" || f.sent.Timeout != webhookTimeout {
		t.Errorf("%+v", f.sent)
	}
}

func TestADatabaseThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := &fakes{attempt: attemptOf("stream_start", start, nil), down: 2}
	if again := once(t, f); again != 0 || f.acts != 1 || f.down != 0 {
		t.Errorf("again in %v, %d actions, %d writes left to fail", again, f.acts, f.down)
	}
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	if again := once(t, &fakes{}); again != 0 {
		t.Errorf("it has ended: again in %v", again)
	}
	if again := once(t, &fakes{due: noon.Add(time.Minute)}); again != time.Minute {
		t.Errorf("it is due later: again in %v", again)
	}
	if again := once(t, &fakes{due: noon}); again <= 0 {
		t.Errorf("it has become due meanwhile: again in %v", again)
	}
}

func TestTheDatabaseIsAwayForGood(t *testing.T) {
	t.Parallel()
	f := &fakes{attempt: attemptOf("custom", nil, nil), down: 1 << 30}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Runner{Store: f, Streams: f, Webhook: f, Log: slog.New(slog.DiscardHandler)}).Run(ctx, "exec_1"); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
}
