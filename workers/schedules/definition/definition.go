// Package definition defines the document by which a customer describes a
// schedule: its fields, defaults and limits (contract 6.1), and how a PATCH changes it.
// It knows no database; URLs are checked through a function that is passed in.
package definition

import (
	"encoding/json"
	"time"

	"sluice.dev/sluice/workers/schedules/plan"
)

// The types of a schedule. Whatever parts a definition has are carried out, in
// this order: its action, its webhook, its event (type custom). The type says
// which part must be there.
const (
	TypeStream  = "stream_start" // needs an action
	TypeWebhook = "webhook"      // needs a webhook with a url
	TypeCustom  = "custom"       // emits schedule.custom
)

// The types of Timing.
const (
	Recurring = "recurring"
	OneTime   = "one_time"
)

// Definition is everything that a customer writes about a schedule.
type Definition struct {
	Name          string       `json:"name"`
	Description   string       `json:"description"`
	Type          string       `json:"type"`
	Schedule      Timing       `json:"schedule"`
	Action        *Action      `json:"action,omitempty"`
	Webhook       *Webhook     `json:"webhook,omitempty"`
	RetryPolicy   *RetryPolicy `json:"retryPolicy,omitempty"`
	Tags          []string     `json:"tags"`
	CatchUpPolicy string       `json:"catchUpPolicy"` // skip, last (default), all
	MaxCatchUp    int          `json:"maxCatchUp"`    // runs, for catchUpPolicy all; default 10
	OverlapPolicy string       `json:"overlapPolicy"` // skip (default), queue, allow
}

// Timing is the schedule object. Dates without a time of day, and times without
// a zone, are read in Timezone.
type Timing struct {
	Type      string `json:"type"`
	Cron      string `json:"cron,omitempty"`
	Timezone  string `json:"timezone"`
	StartDate string `json:"startDate,omitempty"` // a date counts from its first instant
	EndDate   string `json:"endDate,omitempty"`   // a date counts to its last instant
	ExecuteAt string `json:"executeAt,omitempty"`
	// NextExecution is only in answers. In a request it is passed over, so that
	// an object that was read can be sent back.
	NextExecution json.RawMessage `json:"nextExecution,omitempty"`
}

// Action is what is done to a stream.
type Action struct {
	StreamID string            `json:"streamId"`
	Action   string            `json:"action"` // start, stop, pause, resume
	Settings map[string]string `json:"settings,omitempty"`
}

// Webhook is a call to a customer's address. The payload is sent as the body,
// exactly as it is.
type Webhook struct {
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Payload     json.RawMessage   `json:"payload,omitempty"`
	RetryPolicy *RetryPolicy      `json:"retryPolicy,omitempty"`
}

// RetryPolicy says how often and when a failed execution is tried again.
type RetryPolicy struct {
	MaxRetries          *int     `json:"maxRetries"`          // 0–10; default 3
	BackoffMultiplier   *float64 `json:"backoffMultiplier"`   // 1–10; default 2
	InitialDelaySeconds *int     `json:"initialDelaySeconds"` // 1–3600; default 5
}

// maxDelay bounds the wait between two attempts.
const maxDelay = time.Hour

// Delay returns how long to wait after the given number of failures, 1 or more;
// false means that no retry is left. Jitter, from 0 to 1, lengthens it by up to
// a tenth, never past an hour and never shortens it.
func (r RetryPolicy) Delay(failures int, jitter float64) (time.Duration, bool) {
	if failures > *r.MaxRetries {
		return 0, false
	}
	delay := float64(*r.InitialDelaySeconds)
	for range failures - 1 {
		delay = min(delay**r.BackoffMultiplier, maxDelay.Seconds())
	}
	delay = min(delay*(1+jitter/10), maxDelay.Seconds())
	return time.Duration(delay * float64(time.Second)), true
}

// Retry returns the policy for an execution: the webhook's own, else the
// schedule's, else the defaults.
func (d Definition) Retry() RetryPolicy {
	r := d.RetryPolicy
	if d.Webhook != nil && d.Webhook.RetryPolicy != nil {
		r = d.Webhook.RetryPolicy
	}
	return r.withDefaults()
}

// Own returns the schedule's own policy, whatever its webhook's says.
func (d Definition) Own() RetryPolicy { return d.RetryPolicy.withDefaults() }

// Policy returns how late and overlapping runs are treated.
func (d Definition) Policy() plan.Policy {
	return plan.Policy{CatchUp: d.CatchUpPolicy, MaxCatchUp: d.MaxCatchUp, Overlap: d.OverlapPolicy}
}

// withDefaults fills what is not given; a nil policy is all defaults.
func (r *RetryPolicy) withDefaults() RetryPolicy {
	retries, multiplier, delay := 3, 2.0, 5
	full := RetryPolicy{&retries, &multiplier, &delay}
	if r == nil {
		return full
	}
	if r.MaxRetries != nil {
		full.MaxRetries = r.MaxRetries
	}
	if r.BackoffMultiplier != nil {
		full.BackoffMultiplier = r.BackoffMultiplier
	}
	if r.InitialDelaySeconds != nil {
		full.InitialDelaySeconds = r.InitialDelaySeconds
	}
	return full
}

// applyDefaults fills the optional fields.
func (d *Definition) applyDefaults() {
	d.Schedule.NextExecution = nil
	if d.Schedule.Timezone == "" {
		d.Schedule.Timezone = "UTC"
	}
	if d.CatchUpPolicy == "" {
		d.CatchUpPolicy = plan.CatchUpLast
	}
	if d.MaxCatchUp == 0 {
		d.MaxCatchUp = 10
	}
	if d.OverlapPolicy == "" {
		d.OverlapPolicy = plan.OverlapSkip
	}
	if d.Tags == nil {
		d.Tags = []string{}
	}
	if d.RetryPolicy != nil {
		full := d.RetryPolicy.withDefaults()
		d.RetryPolicy = &full
	}
	if d.Webhook != nil && d.Webhook.RetryPolicy != nil {
		full := d.Webhook.RetryPolicy.withDefaults()
		d.Webhook.RetryPolicy = &full
	}
}
