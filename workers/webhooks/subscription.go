package webhooks

import (
	"time"
)

// Status is the state of a subscription.
type Status string

// The states of a subscription.
const (
	Active   Status = "active"   // the first one
	Paused   Status = "paused"   // deliveries wait until it is active again
	Disabled Status = "disabled" // by the service; new events make no deliveries
)

// Bounds of what a subscription may ask for.
const (
	MinSecret          = 16
	MaxSecret          = 256
	MaxURL             = 2048
	MaxEvents          = 100
	MaxDescription     = 500
	MaxRetries         = 15
	MaxRetryDelay      = 24 * time.Hour
	MaxConcurrency     = 256
	MaxRate            = 1000
	DefaultConcurrency = 32
	DefaultOverlap     = 24 * time.Hour
	MaxOverlap         = 7 * 24 * time.Hour
)

// Subscription is a webhook subscription (contract 7.1), with what we add to
// it.
type Subscription struct {
	ID             string    `json:"id"`
	URL            string    `json:"url"`
	Events         []string  `json:"events"`
	Secret         string    `json:"secret,omitempty" db:"-"` // on creation and rotation only
	Description    string    `json:"description"`
	Status         Status    `json:"status"`
	DisabledReason *string   `json:"disabled_reason"` // gone or failing
	RetrySchedule  []int     `json:"retry_schedule"`  // seconds; null: the platform's
	MaxConcurrency int       `json:"max_concurrency"`
	RatePerSecond  *int      `json:"rate_per_second"` // null: no limit
	Ordered        bool      `json:"ordered"`
	FailingSince   Timestamp `json:"failing_since"`
	CreatedAt      Timestamp `json:"created_at"`
	UpdatedAt      Timestamp `json:"updated_at"`
}

// Create is what a caller may say on creation.
type Create struct {
	URL            string   `json:"url"`
	Events         []string `json:"events"`
	Secret         string   `json:"secret"`
	Description    string   `json:"description"`
	RetrySchedule  []int    `json:"retry_schedule"`
	MaxConcurrency *int     `json:"max_concurrency"`
	RatePerSecond  *int     `json:"rate_per_second"`
	Ordered        bool     `json:"ordered"`
}

// Update is what a caller may change; nil leaves a field as it is. An empty
// RetrySchedule and a RatePerSecond of 0 go back to the default.
type Update struct {
	URL            *string   `json:"url"`
	Events         *[]string `json:"events"`
	Description    *string   `json:"description"`
	Status         *Status   `json:"status"`
	RetrySchedule  *[]int    `json:"retry_schedule"`
	MaxConcurrency *int      `json:"max_concurrency"`
	RatePerSecond  *int      `json:"rate_per_second"`
	Ordered        *bool     `json:"ordered"`
}
