package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/product"
)

// work is one attempt under way.
type work struct {
	Runner
	attempt schedules.Attempt
	result  *schedules.Result // what has been done to the stream; kept for later attempts
	webhook *schedules.WebhookResult
	logs    []string
}

// failure is why an attempt failed.
type failure struct {
	message   string // for the customer
	code      decision.Code
	transient bool
}

// log adds a line to the execution's logs. No header, payload or address goes
// in: customers keep secrets there.
func (w *work) log(format string, args ...any) {
	w.logs = append(w.logs, w.now().UTC().Format("2006-01-02T15:04:05.000Z ")+fmt.Sprintf(format, args...))
}

// do carries out the parts of the definition one after the other and stops at
// the first that fails.
func (w *work) do(ctx context.Context) *failure {
	w.log("attempt %d started", w.attempt.Number)
	if w.attempt.Lost {
		w.log("an earlier attempt was cut short; what it did may be repeated")
	}
	w.result = w.attempt.Result
	d := w.attempt.Definition
	if d.Action != nil && w.result == nil {
		if f := w.act(ctx, *d.Action); f != nil {
			return f
		}
	}
	if d.Webhook != nil && d.Webhook.URL != "" {
		return w.call(ctx, *d.Webhook)
	}
	return nil
}

// act does the stream action.
func (w *work) act(ctx context.Context, a definition.Action) *failure {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	by := product.Caller{Account: w.attempt.Account, Plan: w.attempt.Plan, Schedule: w.attempt.Schedule}
	done, err := w.Streams.Act(ctx, by, a)
	if err != nil {
		f := &failure{explain(err), apierror.Code(err), product.Transient(err)}
		w.log("%s of the stream failed: %s", a.Action, f.message)
		return f
	}
	w.result = &schedules.Result{StreamID: a.StreamID, Action: done.Action, Message: done.Message}
	w.log("stream %s", done.Action)
	return nil
}

// explain says in words why the product refused, with every bad field.
func explain(err error) string {
	text := decision.Lookup(apierror.Code(err)).Message
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return text
	}
	if e.Message != "" {
		text = e.Message
	}
	for _, d := range e.Details {
		text += " " + d.Field + " " + d.Issue + "."
	}
	return text
}

// call makes the webhook call.
func (w *work) call(ctx context.Context, hook definition.Webhook) *failure {
	if w.attempt.Unreadable {
		w.log("webhook not called: its headers cannot be read")
		return &failure{"The webhook was not called: its headers cannot be read. Send them anew if this goes on.", decision.Internal, true}
	}
	body := []byte(hook.Payload)
	if len(body) == 0 {
		body = []byte("{}")
	}
	answer, err := w.Webhook.Do(ctx, outbound.Request{URL: hook.URL, Header: headers(hook, w.attempt), Body: body, Timeout: webhookTimeout})
	w.webhook = &schedules.WebhookResult{
		Status: answer.Status, ResponseTime: int(answer.Duration.Round(time.Millisecond) / time.Millisecond), Payload: json.RawMessage(body)}
	if err != nil {
		reason := outbound.ReasonConnection
		if f, ok := errors.AsType[*outbound.Failure](err); ok {
			reason = f.Reason
		}
		w.log("webhook call failed after %d ms: %v", w.webhook.ResponseTime, err)
		permanent := reason == outbound.ReasonURL || reason == outbound.ReasonAddress
		return &failure{"The webhook call failed: " + err.Error() + ".", decision.Webhook001, !permanent}
	}
	w.log("webhook answered %d in %d ms", answer.Status, w.webhook.ResponseTime)
	if !answer.OK() {
		return &failure{fmt.Sprintf("The webhook answered %d.", answer.Status), decision.Webhook001, answer.Status != http.StatusGone}
	}
	return nil
}

// headers are the customer's and those by which a receiver can tell a
// repetition.
func headers(hook definition.Webhook, a schedules.Attempt) http.Header {
	all := http.Header{"Content-Type": {"application/json"}}
	for name, value := range hook.Headers {
		all[http.CanonicalHeaderKey(name)] = []string{value}
	}
	all.Set("Idempotency-Key", a.Execution)
	all.Set("X-Service-Execution-Id", a.Execution)
	return all
}

// outcome is how the execution ends after its last attempt.
func (w *work) outcome(f *failure) schedules.Outcome {
	o := schedules.Outcome{Status: schedules.Success, Webhook: w.webhook}
	if w.result != nil {
		o.Result = *w.result
	}
	if f != nil {
		w.log("failed after %d attempts", w.attempt.Number)
		o.Status, o.Code, o.Logs = schedules.Failed, f.code, w.logs
		o.Result.Message = f.message
		return o
	}
	if w.attempt.Definition.Type == definition.TypeCustom {
		o.Event = customEvent(w.attempt)
		w.log("event %s emitted", o.Event.Type)
	}
	o.Result.Message = w.summary()
	w.log("done")
	o.Logs = w.logs
	return o
}

// summary says in words what was done.
func (w *work) summary() string {
	var parts []string
	if w.result != nil {
		parts = append(parts, w.result.Message)
	}
	if w.webhook != nil {
		parts = append(parts, "Webhook called")
	}
	if w.attempt.Definition.Type == definition.TypeCustom {
		parts = append(parts, "Event emitted")
	}
	return strings.Join(parts, "; ")
}

// customEvent is the event that a custom schedule emits.
func customEvent(a schedules.Attempt) *events.Event {
	data := map[string]any{"schedule_id": a.Schedule, "execution_id": a.Execution, "name": a.Definition.Name}
	if hook := a.Definition.Webhook; hook != nil {
		var payload struct {
			EventName  string          `json:"eventName"`
			CustomData json.RawMessage `json:"customData"`
		}
		if json.Unmarshal(hook.Payload, &payload) == nil {
			data["event_name"], data["custom_data"] = payload.EventName, payload.CustomData
		}
	}
	return &events.Event{ID: "evt_custom_" + a.Execution, Account: a.Account, Type: "schedule.custom", Data: data}
}
