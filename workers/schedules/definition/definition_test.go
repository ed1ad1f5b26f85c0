package definition

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/platform/outbound"
)

// onlyExample accepts one address and refuses every other one.
func onlyExample(url string) error {
	if url != "https://example.com/hook" {
		return &outbound.Refusal{Issue: "leads to an address that is not public"}
	}
	return nil
}

const full = `{"name":"Nightly","description":"d","type":"webhook","tags":["a","b"],
 "schedule":{"type":"recurring","cron":"0 9 * * MON-FRI","timezone":"America/New_York","startDate":"2026-01-01","endDate":"2026-12-31"},
 "action":{"streamId":"strm_1","action":"stop","settings":{"quality":"1080p","bitrate":"5000k"}},
 "webhook":{"url":"https://example.com/hook","headers":{"Authorization":"Bearer x"},
  "payload":{"eventName":"go","customData":{"big":12345678901234567890}},"retryPolicy":{"maxRetries":1}},
 "retryPolicy":{"maxRetries":5,"backoffMultiplier":1.5,"initialDelaySeconds":60},
 "catchUpPolicy":"all","maxCatchUp":5,"overlapPolicy":"queue"}`

func parse(t *testing.T, raw string) Definition {
	t.Helper()
	var d Definition
	if err := httpapi.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func complete(t *testing.T, raw string) Definition {
	t.Helper()
	d := parse(t, raw)
	if _, err := d.Complete(onlyExample); err != nil {
		t.Fatal(err)
	}
	return d
}

// badFields returns the fields that an error names.
func badFields(t *testing.T, err error) []string {
	t.Helper()
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		t.Fatalf("%v is not an apierror.Error", err)
	}
	fields := map[string]bool{}
	for _, d := range e.Details {
		fields[d.Field] = true
	}
	return slices.Sorted(maps.Keys(fields))
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	d := complete(t, `{"name":"n","type":"custom","schedule":{"type":"recurring","cron":"@daily"}}`)
	if d.Schedule.Timezone != "UTC" || d.CatchUpPolicy != "last" || d.MaxCatchUp != 10 || d.OverlapPolicy != "skip" || d.Tags == nil {
		t.Errorf("%+v", d)
	}
	if r := d.Retry(); *r.MaxRetries != 3 || *r.BackoffMultiplier != 2 || *r.InitialDelaySeconds != 5 {
		t.Errorf("retry policy %v %v %v", *r.MaxRetries, *r.BackoffMultiplier, *r.InitialDelaySeconds)
	}
}

func TestTheWebhooksOwnRetryPolicyWins(t *testing.T) {
	t.Parallel()
	if r := complete(t, full).Retry(); *r.MaxRetries != 1 || *r.InitialDelaySeconds != 5 {
		t.Errorf("retry policy %v %v", *r.MaxRetries, *r.InitialDelaySeconds)
	}
}

func TestEveryBadFieldIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"name":"","type":"other","description":"` + strings.Repeat("x", 2001) + `","tags":["a","","a"],
		"schedule":{"type":"recurring","cron":"61 * * * *","timezone":"Mars","startDate":"x","endDate":"2026-13-01","executeAt":"2030-01-01T00:00:00Z"},
		"action":{"streamId":"a b","action":"explode","settings":{"volume":"11","quality":""}},
		"catchUpPolicy":"some","maxCatchUp":101,"overlapPolicy":"x"}`: {
			"action.action", "action.settings.quality", "action.settings.volume", "action.streamId", "catchUpPolicy", "description",
			"maxCatchUp", "name", "overlapPolicy", "schedule.cron", "schedule.endDate", "schedule.executeAt", "schedule.startDate",
			"schedule.timezone", "tags[1]", "tags[2]", "type",
		},
		`{"name":"n","type":"custom","schedule":{"type":"recurring","cron":"@daily"},
		"webhook":{"url":"http://10.0.0.1","headers":{"Host":"x","A":"\n"},"payload":{"eventName":1,"customData":[]},"retryPolicy":{"maxRetries":-1}},
		"retryPolicy":{"maxRetries":11,"backoffMultiplier":0.5,"initialDelaySeconds":0}}`: {
			"retryPolicy.backoffMultiplier", "retryPolicy.initialDelaySeconds", "retryPolicy.maxRetries",
			"webhook.headers.A", "webhook.headers.Host", "webhook.payload.customData", "webhook.payload.eventName",
			"webhook.retryPolicy.maxRetries", "webhook.url",
		},
	} {
		d := parse(t, body)
		_, err := d.Complete(onlyExample)
		if got := badFields(t, err); !slices.Equal(got, want) {
			t.Errorf("named\n%v, want\n%v", got, want)
		}
	}
}

func TestWhatEachTypeNeeds(t *testing.T) {
	t.Parallel()
	const timing = `"schedule":{"type":"one_time","executeAt":"2030-01-01T00:00:00Z"}`
	for body, want := range map[string][]string{
		`{"type":"stream_start","name":"n",` + timing + `}`:                                          {"action"},
		`{"type":"webhook","name":"n",` + timing + `}`:                                               {"webhook"},
		`{"type":"webhook","name":"n",` + timing + `,"webhook":{}}`:                                  {"webhook.url"},
		`{"type":"custom","name":"n"}`:                                                               {"schedule.type"},
		`{"type":"custom","name":"n","schedule":{"type":"one_time"}}`:                                {"schedule.executeAt"},
		`{"type":"custom","name":"n","schedule":{"type":"one_time","executeAt":"soon"}}`:             {"schedule.executeAt"},
		`{"type":"custom","name":"n","schedule":{"type":"recurring"}}`:                               {"schedule.cron"},
		`{"type":"custom","name":"n","schedule":{"type":"one_time","cron":"@daily","executeAt":""}}`: {"schedule.cron", "schedule.executeAt"},
		`{"type":"custom","name":"n","schedule":{"type":"recurring","cron":"@daily","startDate":"2026-02-01","endDate":"2026-01-01"}}`: {
			"schedule.endDate"},
		`{}`: {"name", "schedule.type", "type"},
	} {
		d := parse(t, body)
		_, err := d.Complete(onlyExample)
		if got := badFields(t, err); !slices.Equal(got, want) {
			t.Errorf("%s: named %v, want %v", body, got, want)
		}
	}
}

func TestDatesAreReadInTheZone(t *testing.T) {
	t.Parallel()
	d := complete(t, full)
	p, err := d.Schedule.Plan()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := p.Next(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	if want := "2026-01-01T14:00:00Z"; first.Format(time.RFC3339) != want {
		t.Errorf("first run %v, want %s", first, want)
	}
	last, ok := p.Next(time.Date(2026, 12, 31, 13, 0, 0, 0, time.UTC))
	if want := "2026-12-31T14:00:00Z"; !ok || last.Format(time.RFC3339) != want {
		t.Errorf("run on the end date %v %v, want %s", last, ok, want)
	}
	if next, ok := p.Next(last); ok {
		t.Errorf("a run after the end date: %v", next)
	}
}

func TestExecuteAt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2030-06-01T09:00:00Z":          "2030-06-01T09:00:00Z",
		"2030-06-01T09:00:00.500+02:00": "2030-06-01T07:00:00Z",
		"2030-06-01T09:00:00":           "2030-06-01T13:00:00Z", // on the clock of the zone
	} {
		timing := Timing{Type: OneTime, ExecuteAt: text, Timezone: "America/New_York"}
		p, err := timing.Plan()
		if err != nil {
			t.Fatal(err)
		}
		next, err := timing.Future(p, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || next.Truncate(time.Second).Format(time.RFC3339) != want {
			t.Errorf("%s is %v %v, want %s", text, next, err, want)
		}
	}
}

func TestWithoutAFutureTheFieldIsNamed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for field, timing := range map[string]Timing{
		"schedule.executeAt": {Type: OneTime, Timezone: "UTC", ExecuteAt: "2026-06-01T00:00:00Z"},
		"schedule.endDate":   {Type: Recurring, Timezone: "UTC", Cron: "@daily", EndDate: "2026-05-31"},
	} {
		p, err := timing.Plan()
		if err != nil {
			t.Fatal(err)
		}
		_, err = timing.Future(p, now)
		if got := badFields(t, err); !slices.Equal(got, []string{field}) {
			t.Errorf("named %v, want %s", got, field)
		}
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	retries, multiplier, delay := 4, 10.0, 10
	r := RetryPolicy{&retries, &multiplier, &delay}
	for failures, want := range map[int]time.Duration{1: 10 * time.Second, 2: 100 * time.Second, 3: 1000 * time.Second, 4: time.Hour} {
		for _, jitter := range []float64{0, 0.5, 1} {
			got, ok := r.Delay(failures, jitter)
			if !ok || got < want || got > want+want/10 || got > time.Hour {
				t.Errorf("delay after %d failures with jitter %v: %v %v, want %v", failures, jitter, got, ok, want)
			}
		}
	}
	if _, ok := r.Delay(5, 0); ok {
		t.Error("a fifth retry")
	}
}

func TestThePayloadKeepsItsDigits(t *testing.T) {
	t.Parallel()
	p, err := ParsePatch([]byte(`{"name":"Renamed"}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Apply(complete(t, full))
	if err != nil || !strings.Contains(string(d.Webhook.Payload), "12345678901234567890") {
		t.Errorf("%s %v", d.Webhook.Payload, err)
	}
}

// FuzzDefinition holds that whatever is accepted stays accepted when it is
// stored, read and patched with nothing.
func FuzzDefinition(f *testing.F) {
	f.Add(full)
	f.Add(`{"name":"n","type":"custom","schedule":{"type":"one_time","executeAt":"2030-01-01T00:00:00"}}`)
	f.Add(`{"name":"n","type":"custom","schedule":{"type":"recurring","cron":"* * * * *","nextExecution":null}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		growth.Linear(t, len(raw), 64, 256<<10, func() {
			var d Definition
			if httpapi.Unmarshal([]byte(raw), &d) == nil {
				_, _ = d.Complete(func(string) error { return nil })
			}
		})
		var d Definition
		if httpapi.Unmarshal([]byte(raw), &d) != nil {
			return
		}
		if _, err := d.Complete(func(string) error { return nil }); err != nil {
			return
		}
		nothing, err := ParsePatch([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := nothing.Apply(d)
		if err != nil {
			t.Fatalf("%s cannot be read back: %v", raw, err)
		}
		if _, err := again.Complete(func(string) error { return nil }); err != nil {
			t.Fatalf("%s is refused when read back: %v", raw, err)
		}
		before, _ := json.Marshal(d)
		after, _ := json.Marshal(again)
		if !again.Schedule.Same(d.Schedule) || len(before) != len(after) && d.Webhook == nil {
			t.Fatalf("%s changed when read back:\n%s\n%s", raw, before, after)
		}
	})
}
