package config

import (
	"slices"
	"strings"
)

// Redirect sends callers elsewhere. What it does not say stays as they asked for it,
// the query included.
type Redirect struct {
	// Status is 301, 302, 303, 307 or 308. 0: 307, which keeps method and body and
	// is not remembered.
	Status uint32 `json:"status,omitempty"`
	Scheme string `json:"scheme,omitempty"` // http or https
	// Host, with a port or without. Empty: the one that was asked for, which must be
	// among the route's hosts.
	Host string `json:"host,omitempty"`
	// Path is a template of the route's variables, as in rewrite.
	Path   string `json:"path,omitempty"`
	Prefix string `json:"prefix,omitempty"` // as in rewrite
}

// redirect checks where a route sends its callers.
func (v *validator) redirect(f string, r Route) {
	to := r.Redirect
	if to == nil {
		return
	}
	if to.Status != 0 && !slices.Contains([]uint32{301, 302, 303, 307, 308}, to.Status) {
		v.add(f+".status", "is not the status of a redirect", "301, 302, 303, 307 or 308")
	}
	v.oneOf(f+".scheme", to.Scheme, "", "http", "https")
	v.host(f+".host", to.Host)
	if r.Rewrite != nil {
		v.add(f[:strings.LastIndexByte(f, '.')]+".rewrite", "stands beside redirect", "redirect.path or redirect.prefix")
	}
	if to.Scheme == "" && to.Host == "" && to.Path == "" && to.Prefix == "" {
		v.add(f, "leads back to where the caller comes from", "scheme, host, path or prefix")
	}
	if to.Host == "" && len(r.Hosts) == 0 {
		v.add(f+".host", "is missing, so that the answer would lead to whatever Host the caller sent", "a host, or hosts on the route")
	}
	if to.Scheme == "" && to.Host == "" && to.Path != "" && to.Path == r.Path {
		v.add(f+".path", "is the route's own: callers would come back for ever", "another path")
	}
	v.newPath(f, r, to.Path, to.Prefix)
}
