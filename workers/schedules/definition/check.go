package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/schedules/plan"
)

// The limits of a definition.
const (
	maxName        = 200 // characters
	maxDescription = 2000
	maxTags        = 20
	maxTag         = 64
	maxHeaders     = 32
	maxHeaderBytes = 8 << 10 // names and values together
	maxPayload     = 64 << 10
	maxSettings    = 64 // characters of one value
	maxCatchUp     = 100
)

var streamIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// URLCheck reports whether an address may be called, as
// (*outbound.Client).CheckURL does.
type URLCheck func(url string) error

// check gathers every fault of a definition.
type check struct {
	details []decision.Detail
}

func (c *check) add(field, issue, expected string) {
	c.details = append(c.details, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

// Complete checks the definition, fills its defaults and returns its plan. The
// error lists every bad field. It does not ask whether the plan has a run left:
// see Future.
//
// It takes time linear in the definition, and little memory but for what is wrong.
func (d *Definition) Complete(checkURL URLCheck) (plan.Plan, error) {
	d.applyDefaults()
	var c check
	c.text("name", d.Name, maxName, true)
	c.text("description", d.Description, maxDescription, false)
	c.oneOf("type", d.Type, TypeStream, TypeWebhook, TypeCustom)
	p := c.timing(d.Schedule)
	c.parts(d)
	if d.Action != nil {
		c.action(*d.Action)
	}
	if d.Webhook != nil {
		c.webhook(*d.Webhook, checkURL)
	}
	c.retry("retryPolicy", d.RetryPolicy)
	c.tags(d.Tags)
	c.oneOf("catchUpPolicy", d.CatchUpPolicy, plan.CatchUpSkip, plan.CatchUpLast, plan.CatchUpAll)
	c.within("maxCatchUp", float64(d.MaxCatchUp), 1, maxCatchUp)
	c.oneOf("overlapPolicy", d.OverlapPolicy, plan.OverlapSkip, plan.OverlapQueue, plan.OverlapAllow)
	return p, apierror.Invalid(c.details)
}

// parts checks that the part which the type asks for is there.
func (c *check) parts(d *Definition) {
	if d.Type == TypeStream && d.Action == nil {
		c.add("action", "is missing", "an object: type stream_start needs it")
	}
	if d.Type == TypeWebhook && d.Webhook == nil {
		c.add("webhook", "is missing", "an object: type webhook needs it")
	}
	if d.Webhook != nil && d.Webhook.URL == "" && d.Type != TypeCustom {
		c.add("webhook.url", "is missing", "an https:// URL")
	}
}

func (c *check) text(field, value string, most int, required bool) {
	switch {
	case value == "" && required:
		c.add(field, "is missing", "a string")
	case utf8.RuneCountInString(value) > most:
		c.add(field, "is too long", fmt.Sprintf("at most %d characters", most))
	case slices.ContainsFunc([]rune(value), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }):
		c.add(field, "has control characters", "")
	}
}

func (c *check) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		issue := "is not one of the known values"
		if value == "" {
			issue = "is missing"
		}
		c.add(field, issue, fmt.Sprintf("one of %s", join(allowed)))
	}
}

func (c *check) within(field string, value, low, high float64) {
	if value < low || value > high {
		c.add(field, "is out of range", fmt.Sprintf("%g–%g", low, high))
	}
}

func (c *check) action(a Action) {
	if !streamIDForm.MatchString(a.StreamID) {
		issue := "is not a stream id"
		if a.StreamID == "" {
			issue = "is missing"
		}
		c.add("action.streamId", issue, "the id of a stream")
	}
	c.oneOf("action.action", a.Action, "start", "stop", "pause", "resume")
	for _, name := range sortedKeys(a.Settings) {
		if name != "quality" && name != "bitrate" {
			c.add("action.settings."+name, "is not a known field", "quality or bitrate")
			continue
		}
		c.text("action.settings."+name, a.Settings[name], maxSettings, true)
	}
}

func (c *check) webhook(w Webhook, checkURL URLCheck) {
	if w.URL != "" {
		if err := checkURL(w.URL); err != nil {
			c.details = append(c.details, outbound.Detail("webhook.url", err))
		}
	}
	c.headers(w.Headers)
	c.payload(w.Payload)
	c.retry("webhook.retryPolicy", w.RetryPolicy)
}

func (c *check) headers(headers map[string]string) {
	size := 0
	for _, name := range sortedKeys(headers) {
		size += len(name) + len(headers[name])
		if err := outbound.CheckHeader(name, headers[name]); err != nil {
			c.details = append(c.details, outbound.Detail("webhook.headers."+name, err))
		}
	}
	if len(headers) > maxHeaders || size > maxHeaderBytes {
		c.add("webhook.headers", "are too many or too long", fmt.Sprintf("at most %d headers of %d bytes in all", maxHeaders, maxHeaderBytes))
	}
}

func (c *check) payload(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if len(raw) > maxPayload {
		c.add("webhook.payload", "is too large", fmt.Sprintf("at most %d bytes", maxPayload))
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		c.add("webhook.payload", "has the wrong type", "object")
		return
	}
	var name *string
	if v, ok := members["eventName"]; ok && (json.Unmarshal(v, &name) != nil || name == nil) {
		c.add("webhook.payload.eventName", "has the wrong type", "string")
	} else if name != nil {
		c.text("webhook.payload.eventName", *name, maxName, true)
	}
	var data map[string]json.RawMessage
	if v, ok := members["customData"]; ok && (json.Unmarshal(v, &data) != nil || data == nil) {
		c.add("webhook.payload.customData", "has the wrong type", "object")
	}
}

func (c *check) retry(field string, r *RetryPolicy) {
	if r == nil {
		return
	}
	c.within(field+".maxRetries", float64(*r.MaxRetries), 0, 10)
	c.within(field+".backoffMultiplier", *r.BackoffMultiplier, 1, 10)
	c.within(field+".initialDelaySeconds", float64(*r.InitialDelaySeconds), 1, maxDelay.Seconds())
}

func (c *check) tags(tags []string) {
	if len(tags) > maxTags {
		c.add("tags", "are too many", fmt.Sprintf("at most %d", maxTags))
		return
	}
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		c.text(field, tag, maxTag, true)
		if slices.Contains(tags[:i], tag) {
			c.add(field, "is given twice", "")
		}
	}
}
