package decision

// Decision is the outcome of a check. The zero value lets the request pass.
type Decision struct {
	Code       Code // empty: pass
	RetryAfter int  // seconds; 0: no Retry-After header
	Detail     Detail
}

// Pass is the decision that lets a request go on.
var Pass = Decision{}

// OK reports whether the request may go on.
func (d Decision) OK() bool { return d.Code == "" }

// Deny refuses with code c.
func Deny(c Code) Decision { return Decision{Code: c} }
