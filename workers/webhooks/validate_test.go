package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// valid is a creation that nothing is wrong with, changed by change.
func valid(change func(*Create)) Create {
	in := Create{URL: "https://example.com/", Events: []string{"stream.*"}, Secret: strings.Repeat("s", MinSecret)}
	if change != nil {
		change(&in)
	}
	return in
}

// allow and deny read as the policy for creations.
func allow(t *testing.T, what string, change func(*Create)) {
	t.Helper()
	var c checker
	if c.create(valid(change)); len(c.details) > 0 {
		t.Errorf("%s is refused: %+v", what, c.details)
	}
}

func deny(t *testing.T, field, what string, change func(*Create)) {
	t.Helper()
	var c checker
	c.create(valid(change))
	if len(c.details) != 1 || c.details[0].Field != field {
		t.Errorf("%s: %+v, want one complaint about %s", what, c.details, field)
	}
}

func ptr[T any](v T) *T { return &v }

func TestSecrets(t *testing.T) {
	t.Parallel()
	secret := func(s string) func(*Create) { return func(c *Create) { c.Secret = s } }
	allow(t, "the shortest", secret(strings.Repeat("s", MinSecret)))
	allow(t, "the longest", secret(strings.Repeat("s", MaxSecret)))
	allow(t, "one of Standard Webhooks", secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	allow(t, "spaces and letters of any language", secret("ein Geheimnis für uns"))
	deny(t, "secret", "none", secret(""))
	deny(t, "secret", "one byte too few", secret(strings.Repeat("s", MinSecret-1)))
	deny(t, "secret", "one byte too many", secret(strings.Repeat("s", MaxSecret+1)))
	deny(t, "secret", "a line break", secret("sixteen characters\nand a line"))
	deny(t, "secret", "bytes that are not text", secret("sixteen characters\xff\xfe"))
}

func TestEventsOfASubscription(t *testing.T) {
	t.Parallel()
	events := func(e ...string) func(*Create) { return func(c *Create) { c.Events = e } }
	allow(t, "a name", events("stream.started"))
	allow(t, "everything", events("*"))
	allow(t, "a group and a name of another", events("stream.*", "vod.ready"))
	allow(t, "the test event", events(catalogue.Test))
	deny(t, "events", "an empty list", events())
	deny(t, "events", "too many", events(make([]string, MaxEvents+1)...))
	deny(t, "events[0]", "an unknown name", events("stream.exploded"))
	deny(t, "events[0]", "a wildcard inside", events("*.started"))
	deny(t, "events[1]", "an unknown group", events("stream.*", "weather.*"))
	deny(t, "events[1]", "a name twice", events("vod.ready", "vod.ready"))
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	schedule := func(s ...int) func(*Create) { return func(c *Create) { c.RetrySchedule = s } }
	allow(t, "none", schedule())
	allow(t, "the standard one", schedule(5, 30, 300, 1800, 7200))
	allow(t, "a longer one", schedule(60, 60, 600, 3600, 7200, 36000, 86400))
	deny(t, "retry_schedule", "too few", schedule(5, 30, 300, 1800))
	deny(t, "retry_schedule", "too many", schedule(make([]int, MaxRetries+1)...))
	deny(t, "retry_schedule[0]", "an impatient first", schedule(4, 30, 300, 1800, 7200))
	deny(t, "retry_schedule[4]", "an impatient fifth", schedule(5, 30, 300, 1800, 7199))
	deny(t, "retry_schedule[5]", "an impatient sixth", schedule(5, 30, 300, 1800, 7200, 60))
	deny(t, "retry_schedule[5]", "more than a day", schedule(5, 30, 300, 1800, 7200, 86401))
	deny(t, "retry_schedule[1]", "a negative one", schedule(5, -30, 300, 1800, 7200))
}

func TestRatesAndConcurrency(t *testing.T) {
	t.Parallel()
	allow(t, "the least", func(c *Create) { c.RatePerSecond, c.MaxConcurrency = ptr(1), ptr(1) })
	allow(t, "the most", func(c *Create) { c.RatePerSecond, c.MaxConcurrency = ptr(MaxRate), ptr(MaxConcurrency) })
	deny(t, "rate_per_second", "no rate", func(c *Create) { c.RatePerSecond = ptr(0) })
	deny(t, "rate_per_second", "too high a rate", func(c *Create) { c.RatePerSecond = ptr(MaxRate + 1) })
	deny(t, "max_concurrency", "none at a time", func(c *Create) { c.MaxConcurrency = ptr(0) })
	deny(t, "max_concurrency", "too many at a time", func(c *Create) { c.MaxConcurrency = ptr(MaxConcurrency + 1) })
}

func TestURLsAndDescriptions(t *testing.T) {
	t.Parallel()
	allow(t, "letters of any language", func(c *Create) { c.Description = strings.Repeat("é", MaxDescription) })
	deny(t, "description", "one too long", func(c *Create) { c.Description = strings.Repeat("é", MaxDescription+1) })
	deny(t, "description", "a control character", func(c *Create) { c.Description = "a\x00b" })
	deny(t, "url", "none", func(c *Create) { c.URL = "" })
	deny(t, "url", "one too long", func(c *Create) { c.URL = "https://example.com/" + strings.Repeat("x", MaxURL) })
	deny(t, "url", "a line break", func(c *Create) { c.URL = "https://example.com/\r\nHost: inner" })
}

func TestUpdateLooksOnlyAtWhatIsGiven(t *testing.T) {
	t.Parallel()
	for field, in := range map[string]Update{
		"":                {},
		"url":             {URL: ptr("")},
		"events":          {Events: &[]string{}},
		"description":     {Description: ptr("\x7f")},
		"status":          {Status: ptr(Disabled)},
		"retry_schedule":  {RetrySchedule: &[]int{1}},
		"max_concurrency": {MaxConcurrency: ptr(0)},
		"rate_per_second": {RatePerSecond: ptr(-1)},
	} {
		var c checker
		c.update(in)
		var got string
		for _, d := range c.details {
			got += d.Field
		}
		if d := cmp.Diff(field, got); d != "" {
			t.Errorf("%+v: %s", in, d)
		}
	}
}

func TestUpdateGoesBackToDefaults(t *testing.T) {
	t.Parallel()
	var c checker
	c.update(Update{RatePerSecond: ptr(0), RetrySchedule: &[]int{}, Status: ptr(Active)})
	if len(c.details) > 0 {
		t.Error(c.details)
	}
}
