package schedules

import (
	"time"

	"sluice.dev/sluice/workers/schedules/definition"
)

// view is a schedule as the API shows it.
type view struct {
	ID                  string                 `json:"id"`
	Name                string                 `json:"name"`
	Description         string                 `json:"description"`
	Type                string                 `json:"type"`
	Schedule            timingView             `json:"schedule"`
	Action              *definition.Action     `json:"action,omitempty"`
	Webhook             *definition.Webhook    `json:"webhook,omitempty"`
	RetryPolicy         definition.RetryPolicy `json:"retryPolicy"`
	Tags                []string               `json:"tags"`
	CatchUpPolicy       string                 `json:"catchUpPolicy"`
	MaxCatchUp          int                    `json:"maxCatchUp"`
	OverlapPolicy       string                 `json:"overlapPolicy"`
	Status              string                 `json:"status"`
	ExecutionCount      int64                  `json:"executionCount"`
	LastExecution       *time.Time             `json:"lastExecution"`
	LastExecutionStatus *string                `json:"lastExecutionStatus"`
	CreatedAt           time.Time              `json:"createdAt"`
	UpdatedAt           time.Time              `json:"updatedAt"`
}

// timingView is the schedule object with its next run.
type timingView struct {
	definition.Timing
	NextExecution *time.Time `json:"nextExecution"`
}

// summary is a schedule in a list.
type summary struct {
	ID                  string     `json:"id"`
	Name                string     `json:"name"`
	Type                string     `json:"type"`
	Status              string     `json:"status"`
	NextExecution       *time.Time `json:"nextExecution"`
	ExecutionCount      int64      `json:"executionCount"`
	LastExecution       *time.Time `json:"lastExecution"`
	LastExecutionStatus *string    `json:"lastExecutionStatus"`
	CreatedAt           time.Time  `json:"createdAt"`
}

func viewOf(s Schedule) view {
	d := s.Definition
	return view{
		ID: s.ID, Name: d.Name, Description: d.Description, Type: d.Type,
		Schedule: timingView{d.Schedule, inUTC(s.Next)},
		Action:   d.Action, Webhook: d.Webhook.Masked(), RetryPolicy: d.Own(), Tags: nonNil(d.Tags),
		CatchUpPolicy: d.CatchUpPolicy, MaxCatchUp: d.MaxCatchUp, OverlapPolicy: d.OverlapPolicy,
		Status: s.Status, ExecutionCount: s.Count, LastExecution: millis(s.Last), LastExecutionStatus: s.LastStatus,
		CreatedAt: *millis(&s.CreatedAt), UpdatedAt: *millis(&s.UpdatedAt),
	}
}

func summaryOf(s Schedule) summary {
	return summary{
		ID: s.ID, Name: s.Definition.Name, Type: s.Definition.Type, Status: s.Status, NextExecution: inUTC(s.Next),
		ExecutionCount: s.Count, LastExecution: millis(s.Last), LastExecutionStatus: s.LastStatus, CreatedAt: *millis(&s.CreatedAt),
	}
}

// millis cuts a time to what clients in all languages can hold.
func millis(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	short := at.UTC().Truncate(time.Millisecond)
	return &short
}
