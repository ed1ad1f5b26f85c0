package definition

import (
	"slices"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func apply(t *testing.T, patch string) (Definition, error) {
	t.Helper()
	p, err := ParsePatch([]byte(patch))
	if err != nil {
		return Definition{}, err
	}
	d, err := p.Apply(complete(t, full))
	if err != nil {
		return d, err
	}
	_, err = d.Complete(onlyExample)
	return d, err
}

func TestPatchesMerge(t *testing.T) {
	t.Parallel()
	for patch, holds := range map[string]func(Definition) bool{
		`{}`: func(d Definition) bool { return d.Name == "Nightly" && d.Schedule.Cron == "0 9 * * MON-FRI" },
		`{"name":"New","schedule":{"cron":"@daily"}}`: func(d Definition) bool {
			return d.Name == "New" && d.Schedule.Cron == "@daily" && d.Schedule.Timezone == "America/New_York"
		},
		`{"cron":"@weekly","timezone":"UTC"}`: func(d Definition) bool { return d.Schedule.Cron == "@weekly" && d.Schedule.Timezone == "UTC" },
		`{"schedule":{"endDate":null}}`:       func(d Definition) bool { return d.Schedule.EndDate == "" && d.Schedule.StartDate != "" },
		`{"endDate":null}`:                    func(d Definition) bool { return d.Schedule.EndDate == "" },
		`{"action":null}`:                     func(d Definition) bool { return d.Action == nil },
		`{"webhook":{"headers":{"Authorization":null,"X-A":"b"}}}`: func(d Definition) bool {
			return len(d.Webhook.Headers) == 1 && d.Webhook.Headers["X-A"] == "b" && d.Webhook.URL != ""
		},
		`{"id":"schedule_1","executionCount":3,"lastExecution":null,"updatedAt":"2030-01-01T00:00:00Z"}`: func(d Definition) bool { return d.Name == "Nightly" },
		`{"tags":["z"]}`: func(d Definition) bool { return slices.Equal(d.Tags, []string{"z"}) },
		`{"tags":null}`:  func(d Definition) bool { return len(d.Tags) == 0 },
		`{"schedule":{"type":"one_time","executeAt":"2030-01-01T00:00:00Z"}}`: func(d Definition) bool {
			return d.Schedule.Cron == "" && d.Schedule.StartDate == "" && d.Schedule.Type == OneTime
		},
		`{"retryPolicy":{"maxRetries":2}}`: func(d Definition) bool {
			return *d.RetryPolicy.MaxRetries == 2 && *d.RetryPolicy.InitialDelaySeconds == 60
		},
	} {
		d, err := apply(t, patch)
		if err != nil || !holds(d) {
			t.Errorf("%s: %+v %v", patch, d, err)
		}
	}
}

func TestBadPatches(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string][]string{
		`{"identity":"schedule_1","executions":3}`: {"executions", "identity"},
		`{"name":null}`:                                     {"name"},
		`{"name":5,"tags":"a"}`:                             {"name", "tags"},
		`{"schedule":{"cron":"x"},"name":""}`:               {"name", "schedule.cron"},
		`{"schedule":{"cron":"@daily"},"cron":"@daily"}`:    {"cron"},
		`{"schedule":[]}`:                                   {"schedule"},
		`{"schedule":null}`:                                 {"schedule"},
		`{"schedule":{"executeAt":"2030-01-01T00:00:00Z"}}`: {"schedule.executeAt"},
		`{"schedule":{"seconds":5}}`:                        {"schedule.seconds"},
		`{"webhook":{"url":"http://10.0.0.1/"}}`:            {"webhook.url"},
		`{"webhook":null}`:                                  {"webhook"},
		`{"status":5}`:                                      {"status"},
		`[]`:                                                {"body"},
		`{"name":"a","name":"b"}`:                           {"name"},
	} {
		_, err := apply(t, patch)
		if err == nil {
			t.Errorf("%s is accepted", patch)
			continue
		}
		if got := badFields(t, err); !slices.Equal(got, want) {
			t.Errorf("%s: named %v, want %v", patch, got, want)
		}
	}
}

func TestStatusIsNotPartOfTheDefinition(t *testing.T) {
	t.Parallel()
	p, err := ParsePatch([]byte(`{"status":"paused"}`))
	if err != nil || p.Status != "paused" {
		t.Fatalf("%+v %v", p, err)
	}
	if _, err := p.Apply(complete(t, full)); err != nil {
		t.Error(err)
	}
}

// FuzzPatch holds that a patch never leaves the merger with anything but a
// definition or an error for the caller.
func FuzzPatch(f *testing.F) {
	for _, patch := range []string{`{"cron":"@daily"}`, `{"schedule":{"type":"one_time"}}`, `{"webhook":{"payload":{"a":[1,{"b":null}]}}}`, `null`} {
		f.Add(patch)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		growth.Linear(t, len(raw), 160, 256<<10, func() { _, _ = ParsePatch([]byte(raw)) })
		p, err := ParsePatch([]byte(raw))
		if err != nil {
			return
		}
		d, err := p.Apply(complete(t, full))
		if err != nil {
			badFields(t, err)
			return
		}
		if _, err := d.Complete(onlyExample); err != nil {
			badFields(t, err)
		}
	})
}
