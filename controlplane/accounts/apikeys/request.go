package apikeys

import (
	"encoding/json"
	"fmt"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// smallBody bounds the bodies of these routes.
type smallBody struct{}

// BodyLimit is that bound, in bytes.
func (smallBody) BodyLimit() int64 { return bodyLimit }

// createRequest is the body of POST /v1/auth/keys.
type createRequest struct {
	smallBody
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	Days   lifetime `json:"expires_in_days"`
	Limit  rate     `json:"rate_limit_per_minute"`
}

// spec describes the key that the request asks for; end and faults come from
// what it says of its lifetime.
func (r createRequest) spec(account string, end *time.Time, creator []string, most int, faults []decision.Detail) Spec {
	limit, bad := r.Limit.value()
	return Spec{Account: account, Name: r.Name, Scopes: r.Scopes, ExpiresAt: end, PerMinute: limit,
		Creator: creator, Most: most, faults: append(faults, bad...)}
}

// changeRequest is the body of PATCH /v1/auth/keys/{id}.
type changeRequest struct {
	smallBody
	Name  *string `json:"name"`
	Limit rate    `json:"rate_limit_per_minute"`
}

// change is what the request asks for. A request for nothing lacks a name.
func (r changeRequest) change() (Change, []decision.Detail) {
	limit, details := r.Limit.value()
	if r.Name == nil && !r.Limit.given {
		return Change{}, checkName("")
	}
	if r.Name != nil {
		details = append(checkName(*r.Name), details...)
	}
	return Change{Name: r.Name, Limited: r.Limit.given, PerMinute: limit}, details
}

// rate is rate_limit_per_minute: absent or null means that the key has no limit
// of its own.
type rate struct {
	given, none bool
	perMinute   int64
}

// UnmarshalJSON reads an integer or null.
func (l *rate) UnmarshalJSON(b []byte) error {
	l.given = true
	if string(b) == "null" {
		l.none = true
		return nil
	}
	return json.Unmarshal(b, &l.perMinute)
}

// value returns the limit; nil: none.
func (l rate) value() (*uint32, []decision.Detail) {
	if !l.given || l.none {
		return nil, nil
	}
	if l.perMinute < 1 || l.perMinute > MaxPerMinute {
		return nil, []decision.Detail{{Field: "rate_limit_per_minute", Issue: "is out of range",
			Expected: fmt.Sprintf("an integer from 1 to %d, or null for no limit but the account's", MaxPerMinute)}}
	}
	limit := uint32(l.perMinute)
	return &limit, nil
}

// lifetime is expires_in_days: absent means DefaultDays, null means that the
// key never expires.
type lifetime struct {
	given, never bool
	days         int
}

// UnmarshalJSON reads an integer or null.
func (l *lifetime) UnmarshalJSON(b []byte) error {
	l.given = true
	if string(b) == "null" {
		l.never = true
		return nil
	}
	return json.Unmarshal(b, &l.days)
}

// end returns when a key made at now ends; nil: never.
func (l lifetime) end(now time.Time) (*time.Time, []decision.Detail) {
	days := DefaultDays
	switch {
	case l.never:
		return nil, nil
	case l.given && (l.days < 1 || l.days > MaxDays):
		return nil, []decision.Detail{{Field: "expires_in_days", Issue: "is out of range",
			Expected: fmt.Sprintf("an integer from 1 to %d, or null for a key that never expires", MaxDays)}}
	case l.given:
		days = l.days
	}
	end := now.Add(time.Duration(days) * 24 * time.Hour)
	return &end, nil
}

// adminCreateRequest is the body by which an operator makes a key. expires_at
// is exact, and may stand in place of expires_in_days.
type adminCreateRequest struct {
	createRequest
	ExpiresAt *time.Time `json:"expires_at"`
	// Certificate makes the key one for client certificates, which operators alone may:
	// whoever names a certificate need not have it.
	Certificate *certificateRequest `json:"certificate"`
}

// spec describes the key that the request asks for, at now.
func (r adminCreateRequest) spec(account string, now time.Time) Spec {
	end, details := r.end(now)
	if r.Certificate == nil {
		return r.createRequest.spec(account, end, everything, 0, details)
	}
	c, notAfter, faults := r.Certificate.read(now)
	if r.ExpiresAt == nil && !r.Days.given {
		end = notAfter // a certificate ends by itself
	}
	s := r.createRequest.spec(account, end, everything, 0, append(details, faults...))
	s.Certificate = &c
	return s
}

// end returns when the key ends; nil: never.
func (r adminCreateRequest) end(now time.Time) (*time.Time, []decision.Detail) {
	if r.ExpiresAt == nil {
		return r.Days.end(now)
	}
	if r.Days.given {
		return nil, []decision.Detail{{Field: "expires_at", Issue: "is given together with expires_in_days", Expected: "one of both"}}
	}
	return r.ExpiresAt, nil
}

// rotateRequest is the body of POST /v1/auth/keys/{id}/rotate.
type rotateRequest struct {
	Overlap *int `json:"overlap_seconds"` // nil: DefaultOverlap
}

// overlap returns for how long the old key still works.
func (r rotateRequest) overlap() (time.Duration, error) {
	if r.Overlap == nil {
		return DefaultOverlap, nil
	}
	most := int(MaxOverlap / time.Second)
	if *r.Overlap < 0 || *r.Overlap > most {
		return 0, apierror.Invalid([]decision.Detail{{Field: "overlap_seconds", Issue: "is out of range",
			Expected: fmt.Sprintf("an integer from 0 to %d", most)}})
	}
	return time.Duration(*r.Overlap) * time.Second, nil
}
