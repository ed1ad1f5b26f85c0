package billing

import (
	"encoding/json"
	"errors"
	"time"
)

// Date is a day, written 2026-11-21, at midnight UTC.
type Date struct{ time.Time }

// ParseDate reads a date of the years 2000 to 2199.
//
// It takes time linear in s.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 2000 || t.Year() > 2199 {
		return Date{}, errors.New("not a date such as 2026-11-21")
	}
	return Date{t}, nil
}

// MarshalJSON writes a date.
func (d Date) MarshalJSON() ([]byte, error) { return json.Marshal(d.Format(time.DateOnly)) }

// UnmarshalJSON reads a date.
func (d *Date) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	parsed, err := ParseDate(s)
	*d = parsed
	return err
}
