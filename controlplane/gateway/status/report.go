// Package status reports the state of the platform on one page: what runs, what
// each edge holds, what waits, what is late, what fails, and what to do about it.
//
// [Store.Read] gathers facts, all by the database's clock; [FindProblems] finds what is
// wrong with them. A [Beat] of each process is how the others know that it runs.
package status

import (
	"time"

	"sluice.dev/sluice/controlplane/gateway/edgestatus"
)

// Report is the state of the platform at one moment.
type Report struct {
	Status    string          `json:"status"` // ok or problems
	Time      time.Time       `json:"time"`
	Problems  []Problem       `json:"problems"`
	Database  Database        `json:"database"`
	Processes []Process       `json:"processes"`
	Edges     edgestatus.View `json:"edges"`
	Queues    []Queue         `json:"queues"`
	Schedules Schedules       `json:"schedules"`
	Webhooks  Webhooks        `json:"webhooks"`
	Usage     Usage           `json:"usage"`
}

// Values of Report.Status.
const (
	OK       = "ok"
	Problems = "problems"
)

// Problem is something that an operator should look at.
type Problem struct {
	// Part is the field of Report that shows it.
	Part   string `json:"part"`
	What   string `json:"what"`
	Action string `json:"action"`
}

// Database is the one that all processes share.
type Database struct {
	Version        string  `json:"version"`
	LatencyMS      float64 `json:"latency_ms"` // of the smallest question
	Bytes          int64   `json:"bytes"`
	Connections    int     `json:"connections"`
	ConnectionsMax int     `json:"connections_max"`
	Schema         int64   `json:"schema"`        // number of the last migration
	SchemaNewest   int64   `json:"schema_newest"` // that the process that answers knows
}

// Process is one that has said that it runs.
type Process struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Build    string    `json:"build"`
	Live     bool      `json:"live"` // heard of within LiveFor
	Started  time.Time `json:"started_at"`
	LastSeen time.Time `json:"last_seen"`
}

// Queue is one of River's, with the jobs in it that could be worked on now.
type Queue struct {
	Name    string  `json:"name"`
	Waiting int64   `json:"waiting"`
	Oldest  float64 `json:"oldest_seconds"` // for how long the one that waits longest could have been worked on
}

// Schedules are those of all accounts.
type Schedules struct {
	Active int64   `json:"active"`
	Late   int64   `json:"late"` // due for more than lateAfter
	Latest float64 `json:"latest_seconds"`
}

// Webhooks are the deliveries of all accounts.
type Webhooks struct {
	// Failed is how many deliveries were given up in the last hour; nil: that
	// took too long to count.
	Failed *int64 `json:"failed_last_hour"`
	// Failing endpoints did not take the last event; Disabled ones get none any
	// more, because they failed for days or said that they are gone.
	Endpoints int64 `json:"endpoints"`
	Failing   int64 `json:"endpoints_failing"`
	Disabled  int64 `json:"endpoints_disabled"`
}

// Usage is what edges have counted.
type Usage struct {
	// LastParcel is when an edge was last heard of; nil: never.
	LastParcel *time.Time `json:"last_parcel_at"`
	// SummedTo is the time up to which minutes are summed up into hours.
	SummedTo time.Time `json:"summed_to"`
}
